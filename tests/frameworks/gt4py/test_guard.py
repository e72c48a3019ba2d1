"""Check 'bounds' of what gt4py compiles: results are the same, and indices that only the call knows are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.frameworks.gt4py.backend import make_backend
from tests.bounds.cases import REACHING
from tests.support.gt4py_programs import CASES, Case

pytestmark = pytest.mark.xdist_group("guarded gt4py programs")


def built(case: Case) -> _host.Program:
    """What gt4py calls after it has compiled a program."""
    program = case.program().with_backend(make_backend(gpu=False, **case.options))
    program(**case.make_arguments(), offset_provider=case.make_offset_provider())
    (executable,) = program._compiled_programs.compiled_programs.values()
    assert isinstance(executable, _host.Program)
    return executable


def values(argument: Any) -> list[Any]:
    if isinstance(argument, tuple):
        return [each for element in argument for each in values(element)]
    return [argument.ndarray.copy()] if hasattr(argument, "ndarray") else []


@pytest.mark.parametrize("name", ["gather", "scan", "in_place", "persistent_memory", "external_workspace"])
def test_results_are_the_same(name: str) -> None:
    """Also those of several calls, with memory that the SDFG keeps, and a workspace."""
    case = CASES[name]
    program = built(case)
    results = []
    for check in ("", "bounds"):
        arguments = case.make_arguments(seed=7)
        with gtstub.checks(check):
            for _ in range(3):
                program(**arguments, offset_provider=case.make_offset_provider())
        results.append(values(tuple(arguments.values())))
    for plain, guarded in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, guarded)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("bounds end", "is read 5 elements after its end by the call"),
        ("bounds start", "is read 5 elements before its start by the call"),
    ],
)
def test_offsets_that_a_field_has(check: str, expected: str) -> None:
    """as_offset(): the elements that a call reads depend on the values of a field, so that nothing is known of them."""
    (case,) = (each.case for each in REACHING if each.name == "computed_offset")
    program = built(case)
    arguments = case.make_arguments()
    i, k = arguments["a"].domain.ranges
    arguments |= {"i_end": i.stop, "k_end": k.stop}  # the program begins at 0
    offsets = arguments["by"].ndarray
    offsets[...] = 0
    with gtstub.checks(check):
        program(**arguments, offset_provider=case.make_offset_provider())
        if check == "bounds end":
            offsets[-1, -1] = 5
        else:
            offsets[-i.start, -k.start] = i.start * len(k) + k.start - 5
        with pytest.raises(RuntimeError) as caught:
            program(**arguments, offset_provider=case.make_offset_provider())
    assert f"Argument 'a' of program 'computed_offset' {expected}; check 'bounds'" in str(caught.value)
