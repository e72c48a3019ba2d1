"""Bound calls and captured steps of gt4py's programs, against the programs themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gt4py.next import config
from gt4py.next.instrumentation import metrics

import gtstub
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support import small_programs as small
from tests.support.gt4py_programs import CASES

pytestmark = pytest.mark.xdist_group("compile")


def fields(value: Any) -> list[Any]:
    """The fields in nested tuples and collections."""
    if hasattr(value, "ndarray"):
        return [value]
    if isinstance(value, tuple):
        return [each for item in value for each in fields(item)]
    return [each for item in vars(value).values() for each in fields(item)] if hasattr(value, "__dict__") else []


@pytest.mark.parametrize("name", ["in_place", "gather", "nested_tuples", "named_collections", "implicit_domain"])
def test_a_captured_step_does_what_the_program_does(name: str) -> None:
    case = CASES[name]
    backend = make_backend(gpu=False, **case.options)
    assert backend is not None
    program = case.program().with_backend(backend)
    arguments, provider = case.make_arguments(), case.make_offset_provider()
    arrays = [field.ndarray for value in arguments.values() for field in fields(value)]
    before = [array.copy() for array in arrays]

    def run() -> None:
        program(**arguments, offset_provider=provider)
        program(**arguments, offset_provider=provider)

    run()
    expected = [array.copy() for array in arrays]
    step = gtstub.capture(run)
    assert len(step) == 2
    for array, values in zip(arrays, before, strict=True):
        array[...] = values
    step()
    assert [array.tobytes() for array in arrays] == [array.tobytes() for array in expected]


def test_a_variant_is_bound() -> None:
    program = gtstub.compile(
        small.static_arguments,
        bound_static_args={"exponent": 3},
        static_args={"weights": [(2.0, 1.0)], "flag": [True, False]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )
    arguments = CASES["static_arguments"].make_arguments()
    a, out = arguments["a"], arguments["out"]
    calls = [program.bind(a, flag=flag, weights=(2.0, 1.0), out=out) for flag in (True, False)]
    for flag, call in zip((True, False), calls, strict=True):
        call()
        found = out.asnumpy().copy()
        program(a, flag=flag, weights=(2.0, 1.0), out=out)
        assert found.tobytes() == out.asnumpy().tobytes()
        assert call.arguments["flag"] is flag
        with pytest.raises(ValueError, match=r"Argument 'flag' of .* was compiled in, and cannot be changed."):
            call.set(flag=not flag)
    with pytest.raises(ValueError, match="was not compiled for"):
        program.bind(a, flag=True, weights=(3.0, 1.0), out=out)


def test_a_start_measures_when_gt4py_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["in_place"]
    backend = make_backend(gpu=False, **case.options)
    assert backend is not None
    program = case.program().with_backend(backend)
    arguments = case.make_arguments()
    with gtstub.capture() as step:
        program(**arguments, offset_provider={})

    def samples_of_a_step(level: int) -> int:
        before = count()
        monkeypatch.setattr(config, "COLLECT_METRICS_LEVEL", level)
        step()
        step[0]()
        return count() - before

    def count() -> int:
        return sum(len(source.metrics[metrics.COMPUTE_METRIC].samples) for source in metrics.sources.values())

    levels = (metrics.DISABLED, metrics.PERFORMANCE, metrics.MINIMAL, metrics.ALL, metrics.DISABLED)
    assert [samples_of_a_step(level) for level in levels] == [0, 2, 0, 2, 0]
    assert np.isfinite(arguments["a"].asnumpy()).all()
