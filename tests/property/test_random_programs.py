"""
Random programs: planned, rendered, compiled and called, from C and from Python, on a library that records what arrives.

GTSTUB_EXAMPLES=N draws N new programs; without it a run draws the same ones every time.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import ArrayArgument, FieldType, ScalarType, TupleType, Type
from tests.support.c_program import CProgram, load
from tests.support.random_programs import FieldValue, Number, RandomProgram, random_programs, shortest
from tests.support.sdfg_libraries import Recorder, build_recording_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import build_stub

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")

# --- Arguments of Python ----------------------------------------------------------------------------------------------


def gt4py_field(value: FieldValue) -> object:
    """A gt4py field, which alone can have an origin."""
    common = pytest.importorskip("gt4py.next").common
    kinds = {"K": common.DimensionKind.VERTICAL, "E2V": common.DimensionKind.LOCAL, "C2E": common.DimensionKind.LOCAL}
    dims = [common.Dimension(dim, kind=kinds.get(dim, common.DimensionKind.HORIZONTAL)) for dim in value.dims]
    ranges = [(value.get(axis, "start"), value.get(axis, "stop")) for axis in range(len(dims))]
    return common._field(value.array, domain=common.domain(dict(zip(dims, ranges, strict=True))))


def python_argument(type_: Type, value: Any, collect: Callable[[TupleType, list[object]], object]) -> object:
    match type_:
        case TupleType():
            elements = [python_argument(t, v, collect) for t, v in zip(type_.elements, value, strict=True)]
            return tuple(elements) if type_.keys is None else collect(type_, elements)
        case ScalarType(dtype):
            return None if value is None else np.dtype(dtype).type(value)
        case FieldType(dtype, ()):
            return None if value is None else np.array(value, dtype)
        case _:
            if value is None or not any(value.origin):
                return None if value is None else value.array
            return gt4py_field(value)


def as_tuple(type_: TupleType, elements: list[object]) -> object:
    return tuple(elements)


def as_object(type_: TupleType, elements: list[object]) -> object:
    return types.SimpleNamespace(**dict(zip(type_.keys or (), elements, strict=True)))


def as_named_tuple(type_: TupleType, elements: list[object]) -> object:
    """Elements have another order than the program's."""
    values = dict(zip(type_.keys or (), elements, strict=True))
    return collections.namedtuple("Named", sorted(values))(**values)


def python_arguments(
    example: RandomProgram, collect: Callable[[TupleType, list[object]], object] = as_tuple
) -> list[object]:
    arguments = example.arguments
    return [python_argument(p.type, arguments[p.name], collect) for p in example.program.parameters]


# --- What must hold ---------------------------------------------------------------------------------------------------


def check_slots(found: dict[str, Number], example: RandomProgram) -> None:
    expected = example.expected()
    for name, value in found.items():
        if name == "gt_compute_time":
            assert value != 0
        elif name == "gt_metrics_level":
            assert value == 0
        else:
            assert value == expected[name], name
    assert found.keys() >= expected.keys() - {"gt_compute_time", "gt_metrics_level"}


def check_call(recorder: Recorder, example: RandomProgram, call: Callable[[], object], memory: int) -> None:
    """One call, which is the first: it initialises, installs the workspace, and passes every slot."""
    call()
    records = recorder.records()
    functions = [record.function for record in records]
    workspace = ["workspace_bytes", "workspace_install"] if example.sdfg.workspaces else []
    assert functions == ["init", *workspace, "program"]
    expected = example.expected() | {"gt_metrics_level": 0}
    for record in records[:-1]:
        assert record.values == {name: expected[name] for name in example.sdfg.init}
        assert record.memory == (memory if record.function == "workspace_install" else 0)
    assert len({record.handle for record in records}) == 1
    check_slots(records[-1].values, example)


def spoil(example: RandomProgram, name: str, axis: int, change: str) -> RandomProgram:
    """The same program with one argument in another layout, among zeros: the indices of a new table are read."""
    value = example.values[name]
    assert isinstance(value, FieldValue)
    shape, strides, origin = list(value.array.shape), list(value.array.strides), list(value.origin)
    if change == "origin":
        origin[axis] += 1
    elif change == "size":
        shape[axis] += 1
    else:
        strides[axis] += value.array.itemsize
    zeros = np.zeros(1 << 16, value.array.dtype)
    array = np.lib.stride_tricks.as_strided(zeros[len(zeros) // 2 :], shape, strides)
    values = example.values | {name: FieldValue(array, tuple(origin), value.dims)}
    return dataclasses.replace(example, values=values)


def with_other_value(example: RandomProgram, name: str) -> RandomProgram:
    """The same program with another value for one static argument."""
    value = example.statics[name]
    other: Number = (-value or 1.0) if isinstance(value, float) else not value if isinstance(value, bool) else value ^ 1
    return dataclasses.replace(example, statics={**example.statics, name: other})


def fits(example: RandomProgram) -> bool:
    """Whether the arguments satisfy what the signatures fix, and agree with each other."""
    for argument in example.sdfg.arguments:
        value = example.values.get(argument.name)
        if isinstance(argument, ArrayArgument) and isinstance(value, FieldValue):
            for i, axis in enumerate(argument.axes):
                for property_ in ("size", "start", "stop", "stride"):
                    fixed = getattr(axis, property_)
                    if fixed not in (None, value.get(i, property_)) and not value.is_without_meaning(i, property_):
                        return False
    for connectivity in example.program.connectivities:
        table = example.values.get(f"gt_conn_{connectivity.name}")
        if isinstance(table, FieldValue) and (
            any(table.origin)
            or table.get(1, "size") != connectivity.max_neighbors
            or table.get(0, "size") < shortest(example.values, connectivity.source.name)
        ):
            return False
    expected = example.expected()
    return all(
        example.value_of(shown) == expected[shown.symbol] or example.is_without_meaning(shown)
        for shown in example.shown
    )


@pytest.fixture(scope="module")
def folder() -> Any:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.sanitizer
@settings(
    max_examples=int(EXAMPLES or 50),
    derandomize=EXAMPLES is None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(example=random_programs(), data=st.data())
def test_every_slot_of_random_programs(
    example: RandomProgram, data: st.DataObject, toolchain: Toolchain, folder: Path
) -> None:
    place = Path(tempfile.mkdtemp(dir=folder))
    stub = build_stub(example.sdfg, example.program, place, toolchain)
    library = build_recording_library(example.sdfg, place)
    recorder = Recorder(library)
    recorder.behaviour.workspace_bytes = 512
    memory = np.zeros(1024, np.uint8)
    aligned = memory[-memory.ctypes.data % 256 :][:512]

    from_c = CProgram(load(stub, library), stub, example.sdfg, example.values)
    if example.sdfg.workspaces:
        from_c.set_workspace(aligned)
    check_call(recorder, example, lambda: check_none(from_c(example.values)), aligned.ctypes.data)

    # Another layout of one field: refused before anything has run, or its values arrive.
    fields = [name for name, value in example.values.items() if isinstance(value, FieldValue)]
    if fields:
        name = data.draw(st.sampled_from(fields))
        value = example.values[name]
        assert isinstance(value, FieldValue)
        axis = data.draw(st.integers(0, value.array.ndim - 1))
        other = spoil(example, name, axis, data.draw(st.sampled_from(("origin", "size", "stride"))))
        before = len(recorder.calls())
        message = from_c(other.values)
        assert (message is None) == fits(other), message
        event("another layout is " + ("taken" if message is None else "refused"))
        assert len(recorder.calls()) == before + (message is None)
        if message is None:
            check_slots(recorder.calls()[-1], other)
        else:
            assert "program 'prog'" in message
    from_c.unload()

    recorder.clear()
    from_python = _host.load(stub, library)
    if example.sdfg.workspaces:
        from_python.set_workspace("CPU_Heap", aligned)
    arguments = python_arguments(example)
    provider = {
        c.name: example.values[f"gt_conn_{c.name}"].array  # type: ignore[union-attr]
        for c in example.program.connectivities
        if f"gt_conn_{c.name}" in example.values
    }
    check_call(recorder, example, lambda: from_python(*arguments, offset_provider=provider), aligned.ctypes.data)
    by_name = dict(zip((p.name for p in example.program.parameters), arguments, strict=True))
    from_python(**by_name, offset_provider=provider)
    check_slots(recorder.calls()[-1], example)
    for collect in (as_object, as_named_tuple):
        from_python(*python_arguments(example, collect), offset_provider=provider)
        check_slots(recorder.calls()[-1], example)

    # Another value for one static argument: refused.
    if example.statics:
        name = data.draw(st.sampled_from(sorted(example.statics)))
        event("a static argument is refused")
        before = len(recorder.calls())
        with pytest.raises(ValueError, match="compile the program for this value, too"):
            from_python(*python_arguments(with_other_value(example, name)), offset_provider=provider)
        assert len(recorder.calls()) == before
        from_python(*arguments, offset_provider=provider)
        check_slots(recorder.calls()[-1], example)
    recorder.clear()


def check_none(message: str | None) -> None:
    assert message is None, message


def test_a_wrong_slot_is_noticed(tmp_path: Path, toolchain: Toolchain) -> None:
    """Negative control: a stub in which two slots are exchanged."""
    one, other = np.zeros(3), np.zeros(3)
    example = RandomProgram(
        SMALL_PROGRAM,
        SMALL_SDFG,
        values={"x": FieldValue(one, (0,), ("K",)), "factor": 0.5, "out": FieldValue(other, (0,), ("K",))},
        statics={},
        shown=(),
    )
    stub = build_stub(SMALL_SDFG, SMALL_PROGRAM, tmp_path, toolchain)
    library = build_recording_library(SMALL_SDFG, tmp_path)
    program = CProgram(load(stub, library), stub, example.sdfg, example.values)
    check_none(program(example.values | {"x": example.values["out"], "out": example.values["x"]}))
    (found,) = Recorder(library).calls()
    with pytest.raises(AssertionError, match="out"):
        check_slots(found, example)
    program.unload()
