"""A program of gt4py that was compiled for one value of its static arguments, called without gt4py's own dispatch."""

from __future__ import annotations

import numpy as np
import pytest

from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.gt4py_programs import CASES, lower


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({3: False}, "Argument 'flag' of program 'static_arguments' is False, but was compiled in as True"),
        ({2: 2}, "Argument 'exponent' of program 'static_arguments' is 2, but was compiled in as 1"),
        (
            {1: (1.5, 1.2)},
            r"Argument 'weights\[0\]' of program 'static_arguments' is 1\.5, but was compiled in as 1\.1",
        ),
    ],
)
def test_another_static_value_is_refused(changed: dict[int, object], text: str) -> None:
    case = CASES["static_arguments"]
    lowering = lower(case)
    backend = make_backend(gpu=False, **case.options)
    program = backend.load_artifact(backend.executor(backend.transforms(lowering.concrete)))
    args = list(lowering.args)
    out = args[-1].ndarray
    program(*args, offset_provider={})
    expected = out.copy()
    assert expected.any()
    out[...] = 0
    wrong = [changed.get(i, value) for i, value in enumerate(args)]
    with pytest.raises(ValueError, match=f"^{text}"):
        program(*wrong, offset_provider={})
    assert not out.any()
    program(*args, offset_provider={})
    np.testing.assert_array_equal(out, expected)
