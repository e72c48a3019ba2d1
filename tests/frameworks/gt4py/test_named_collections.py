"""Named collections of gt4py, passed as they are to what a backend compiled, without gt4py's own front door."""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest

from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.gt4py_programs import CASES, lower
from tests.support.small_programs import Coefficients, Wind


@pytest.fixture(scope="module")
def program() -> Any:
    case = CASES["named_collections"]
    backend = make_backend(gpu=False, **case.options)
    return backend.load_artifact(backend.executor(backend.transforms(lower(case).concrete)))


def test_a_dataclass_goes_straight_to_the_loaded_program(program: Any) -> None:
    arguments = CASES["named_collections"].make_arguments()
    wind, coefficients, out = arguments.values()
    assert isinstance(wind, Wind)
    assert isinstance(coefficients, Coefficients)
    expected = wind.u.ndarray + coefficients.weight * coefficients.wind.v.ndarray
    for args in ((wind, coefficients), (tuple(wind), (coefficients.weight, tuple(coefficients.wind)))):
        out.ndarray[...] = 0
        program(*args, out, offset_provider={})
        np.testing.assert_array_equal(out.ndarray, expected)


def test_messages_name_elements_as_the_program_does(program: Any) -> None:
    wind, coefficients, out = CASES["named_collections"].make_arguments().values()
    program(wind, coefficients, out, offset_provider={})
    with pytest.raises(TypeError) as caught:
        program(wind, Coefficients(gtx.float64(1.0), Wind(wind.u, 1.0)), out, offset_provider={})  # type: ignore[arg-type]
    assert str(caught.value) == (
        "Argument 'coefficients.wind.v' of program 'named_collections' must be a field, not 'float'."
    )
