"""
Random DaCe programs, called through everything that gtstub makes of them, on libraries that record what arrives.

DaCe parses each program, and does not compile it. GTSTUB_EXAMPLES=N draws N new programs; without it a run draws the
same ones every time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings

from gtstub.stub.signature.model import ScalarArgument, SdfgSignature
from tests.support.c_program import CProgram, load
from tests.support.dace_calls import LEFT_OUT, SEEN, Calls, check_refused
from tests.support.random_dace_programs import (
    SYMBOLS,
    RandomDaceProgram,
    UnknownSymbolError,
    evaluated,
    laid_out,
    random_dace_programs,
    solve,
)
from tests.support.random_programs import FieldValue

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")


# --- Mistakes ---------------------------------------------------------------------------------------------------------


def other_layouts(array: Any, *, is_huge: bool) -> Iterator[Any]:
    """An array of another size or stride; sizes beyond an int32 if it may be huge."""
    shape, strides = list(array.shape), [each // array.itemsize for each in array.strides]
    for axis in range(array.ndim):
        for by in (-1, 1, 1 << 31) if is_huge else (-1, 1):
            if shape[axis] + by >= 0:
                sizes = [*shape[:axis], shape[axis] + by, *shape[axis + 1 :]]
                try:
                    yield laid_out(array.dtype, sizes, strides)
                except ValueError:  # numpy has no array of so many bytes
                    continue
        steps = [*strides[:axis], strides[axis] + 1, *strides[axis + 1 :]]
        yield laid_out(array.dtype, shape, steps)


def wrong_kinds(array: Any) -> Iterator[tuple[str, Any]]:
    """What is no array of its type, with what the message must say."""
    dtype = "float32" if array.dtype != "float32" else "int32"
    yield (
        f"must have dtype '{array.dtype}', not '{dtype}'",
        laid_out(dtype, list(array.shape), [each // array.itemsize for each in array.strides]),
    )
    yield "must have ", np.zeros([max(2, size) for size in (*array.shape, 2)], array.dtype)
    if array.ndim > 1 and len(array) > 0 and 1 not in array.shape:
        yield "must have ", array[0]
    yield "", ["text"]
    yield "", 3


def wrong_scalars(dtype: str) -> Iterator[Any]:
    yield "text"
    yield np.zeros(3)
    if dtype == "bool":
        yield 2
    elif dtype.startswith("float"):
        yield 1j
    else:
        yield 1.5
        yield 1 << 64
        yield -(1 << 63) - 1


class FromC:
    """The program of some calls, as a C host calls it; `results` are the arrays that Python would return."""

    def __init__(self, calls: Calls, results: tuple[Any, ...]) -> None:
        variant = calls.program.variants[0]
        example = calls.example
        known = {**calls.arguments, **calls.tables, **dict(zip(result_names(results), results, strict=True))}
        self._values = {leaf.name: as_c(known[leaf.name]) for leaf in variant.plan.arguments}
        dtypes = {name: dtype for name, dtype, _ in example.scalars} | SYMBOLS
        arguments = tuple(ScalarArgument(name, dtypes.get(name, "float64")) for name in self._values)
        stub, library = (variant.entry.path / name for name in (f"{variant.plan.name}_stub.so", variant.plan.library))
        self.program = CProgram(
            load(stub, library), stub, SdfgSignature(variant.plan.name, "cpu", "", arguments), self._values
        )

    def call(self, **changed: Any) -> str | None:
        """None, or the message. The SDFG need not take what is changed."""
        return self.program({**self._values, **{k: as_c(v) for k, v in changed.items() if k in self._values}})


def result_names(results: tuple[Any, ...]) -> list[str]:
    return ["result"] if len(results) == 1 else [f"result_{number}" for number in range(len(results))]


def as_c(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return getattr(value, "item", lambda: value)()
    return FieldValue(value, (0,) * value.ndim, tuple(f"axis_{axis}" for axis in range(value.ndim)))


def check_layouts(calls: Calls, from_c: FromC | None) -> None:
    """Arrays of other sizes and strides: taken if there are symbols that fit, and otherwise refused."""
    for name, array in calls.arrays.items():
        for other in other_layouts(array, is_huge=not calls.example.results):
            check_changed(calls, from_c, **{name: other})
    for name, value in calls.symbols.items():
        for changed in (value - 1, value + 1):
            check_changed(calls, from_c, **{name: changed})


def check_changed(calls: Calls, from_c: FromC | None, **changed: Any) -> None:
    example = calls.example
    try:
        found = solve(example, {**calls.arrays, **calls.tables, **changed}, {**calls.symbols, **only_symbols(changed)})
    except UnknownSymbolError:
        event("the value of a symbol is not known")
        return
    symbols = {**example.symbols, **only_symbols(changed), **(found or {})}
    sizes = [evaluated(text, symbols) for each in example.results for text in each.sizes]
    if found is None or any(size < 0 for size in sizes):
        event("another layout is refused")
        message = check_refused(calls, "axis", kinds=(ValueError,), **changed)
        if from_c is not None and not example.results:
            assert from_c.call(**changed) == message
        return
    if any(each.result and each.result[1] for each in example.callbacks):
        return  # what a callback returns depends on the symbols
    event("another layout is taken")
    results = calls.call(**changed)
    calls.check_slots(results, symbols, **{name: each for name, each in changed.items() if name not in SYMBOLS})
    SEEN.clear()
    if from_c is not None and not example.results:
        assert from_c.call(**changed) is None
        calls.check_slots(results, symbols, **{name: each for name, each in changed.items() if name not in SYMBOLS})


def only_symbols(values: Mapping[str, Any]) -> dict[str, int]:
    return {name: value for name, value in values.items() if name in SYMBOLS}


def check_axes(calls: Calls) -> None:
    """The memory of an array with another axis of size 1 is passed."""
    for name, array in calls.arrays.items():
        if 1 not in array.shape:
            calls.check_slots(calls.call(**{name: array[..., None]}))
            SEEN.clear()


def check_kinds(calls: Calls) -> None:
    """Arguments of other types, and too few and too many of them: refused."""
    for name, array in {**calls.arrays, "log": calls.log}.items():
        for text, wrong in wrong_kinds(array):
            check_refused(calls, f"'{name}'", text, **{name: wrong})
        check_refused(calls, f"'{name}'", **{name: LEFT_OUT})
    for name, dtype, _ in calls.example.scalars:
        for wrong in wrong_scalars(dtype) if name in calls.scalars else ():
            check_refused(calls, f"'{name}'", **{name: wrong})
    taken = {leaf.name for leaf in calls.program.variants[0].plan.arguments}
    for name in calls.symbols.keys() & taken:
        for wrong in wrong_scalars(SYMBOLS[name]):
            check_refused(calls, f"'{name}'", **{name: wrong})
    check_refused(calls, "'unknown'", unknown=1)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@settings(
    max_examples=int(EXAMPLES or 24),
    derandomize=EXAMPLES is None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(example=random_dace_programs())
def test_every_slot_of_random_dace_programs(example: RandomDaceProgram, folder: Path) -> None:
    calls = Calls(example, Path(tempfile.mkdtemp(dir=folder)))
    for _ in range(2):
        results = calls.call()
        calls.check_slots(results)
        calls.check_results(results)
        calls.check_callbacks()
    if example.results:
        assert calls.call(out=results) is results
        calls.check_slots(results)
        calls.check_callbacks()

    made = () if results is None else results if isinstance(results, tuple) else (results,)
    from_c = FromC(calls, made) if not example.callbacks and len(made) == len(example.results) else None
    if from_c is not None:
        assert from_c.call() is None
        calls.check_slots(results)
    check_layouts(calls, from_c)
    check_axes(calls)
    check_kinds(calls)
    if from_c is not None:
        from_c.program.unload()

    # The right arguments are right after all mistakes, too: another table, None for what may be left out.
    for name, table in calls.tables.items():
        calls.tables[name] = calls.program.dace_program.f.__globals__[name] = table.copy()
    nones = {each.name: None for each in example.arrays if each.name in example.left_out}
    calls.check_slots(calls.call(**nones))
    assert len(calls.program.variants) == 1
