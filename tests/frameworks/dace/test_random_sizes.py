"""Sizes and strides of DaCe programs that need care, and a negative control of test_random_programs.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.dace_calls import Calls, check_refused
from tests.support.random_dace_programs import Array, Callback, RandomDaceProgram, contiguous, laid_out


def program_of(
    arrays: tuple[Array, ...],
    symbols: Mapping[str, int],
    scalars: tuple[Any, ...] = (),
    results: tuple[Array, ...] = (),
) -> RandomDaceProgram:
    """A program with these arguments, whose SDFG takes all symbols."""
    return RandomDaceProgram(
        arrays=arrays,
        scalars=scalars,
        globals_=(),
        results=results,
        callbacks=(),
        symbols=symbols,
        logged=tuple(symbols),
        passed=(),
        keyword_only=frozenset(),
        left_out=frozenset(),
    )


def array(name: str, sizes: tuple[str, ...], strides: tuple[str, ...] = ()) -> Array:
    return Array(name, "float64", sizes, strides or contiguous(sizes), is_plain=not strides)


def test_sizes_of_results(tmp_path: Path) -> None:
    """They follow from what arrays show in whatever form; other scalars than symbols may have any value."""
    example = program_of(
        (array("a", ("2*N - 1",)), array("b", ("3",), ("M",))),
        {"N": 4, "M": 3},
        scalars=(("p", "float64", float("inf")), ("q", "float32", 7)),
        results=(array("result0", ("N - 2", "M")), array("result1", ("N + 2",))),
    )
    calls = Calls(example, tmp_path)
    results = calls.call()
    calls.check_slots(results)
    calls.check_results(results)
    calls.call(q=float("nan"))
    check_refused(calls, "'result_0'", "would have the negative size N - 2 = -1 on axis 0", a=np.zeros(1))
    check_refused(calls, "'a'", "must have dtype 'float64', not 'int8'", a=np.zeros(7, np.int8))


def test_strides_without_meaning(tmp_path: Path) -> None:
    """No access depends on the stride of an axis with fewer than two elements, or of an array without elements."""
    example = program_of(
        (array("a", ("K", "3")), array("b", ("2", "3"), ("M", "N")), array("c", ("K", "3"), ("M", "1"))),
        {"K": 2, "M": 5, "N": 6},
    )
    calls = Calls(example, tmp_path)
    calls.call()
    for rows, strides in ((0, (0, 0)), (0, (7, 9)), (1, (77, 1))):
        a, c = (laid_out("float64", [rows, 3], list(strides)) for _ in range(2))
        calls.call(a=a, c=c)
        calls.check_slots(None, {"K": rows, "M": 5, "N": 6}, a=a, c=c)
    a, c = (laid_out("float64", [1, 3], [3, 2]) for _ in range(2))
    check_refused(calls, "'a'", "must have stride 1 on axis 1 ('axis_1'), not 2", a=a, c=c)
    check_refused(calls, "stride of axis 0 of 'c' is 6", c=laid_out("float64", [2, 3], [6, 1]))


def test_callbacks_get_empty_arrays(tmp_path: Path) -> None:
    """The very object that was passed, although its strides are not those of the SDFG."""
    example = program_of((array("a", ("N", "3")), array("b", ("N",))), {"N": 2})
    calls = Calls(dataclasses.replace(example, callbacks=(Callback("call_0", ("a", "b"), None),)), tmp_path)
    calls.call()
    calls.check_callbacks()
    calls.arrays |= {"a": np.zeros((0, 3)), "b": np.zeros(0)}
    calls.call()
    calls.check_callbacks()


def test_a_wrong_slot_is_noticed(tmp_path: Path) -> None:
    """Negative control: the arrays are exchanged, or a symbol is another one."""
    calls = Calls(program_of((array("a", ("N",)), array("b", ("N",))), {"N": 3}), tmp_path)
    calls.call()
    calls.check_slots()
    with pytest.raises(AssertionError):
        calls.check_slots(symbols={"N": 4})
    calls.call(a=calls.arrays["b"], b=calls.arrays["a"])
    with pytest.raises(AssertionError):
        calls.check_slots()
