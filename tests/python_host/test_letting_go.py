"""The Python host keeps no object longer than it needs it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.allocations import growth, held, needs_counts, needs_frees
from tests.support.hosting import (
    EDGES,
    LEVELS,
    PROGRAM,
    SDFG,
    Bound,
    DLPack,
    PublicField,
    call,
    domain,
    edge_field,
    good_arguments,
    run_script,
)
from tests.support.sdfg_libraries import build_null_library
from tests.support.stubs import build_stub

pytestmark = pytest.mark.sanitizer


def test_a_program_keeps_no_field_alive(bound: Bound) -> None:
    vn, table = edge_field(), np.zeros((EDGES, 2), np.int32)
    floats = np.zeros(LEVELS, np.float32)
    watched = [weakref.ref(vn), weakref.ref(vn._ndarray), weakref.ref(table), weakref.ref(floats)]
    for _ in range(3):
        call(bound, vn=vn, x=(floats, (1, 1.0)), offset_provider={"E2V": table})
    del vn, table, floats
    assert [reference() for reference in watched] == [None] * 4


def test_reference_counts_do_not_change(bound: Bound) -> None:
    good = good_arguments()
    watched = [*good.values(), *good["x"], good["x"][1][1], good["vn"]._ndarray, good["offset_provider"]["E2V"]]
    watched = [item for item in watched if not isinstance(item, (bool, int))]
    bound.program(**good)
    bound.program(**good)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        bound.program(**good)
        with pytest.raises(TypeError):
            bound.program(**{**good, "n": 1.5})
        with pytest.raises(TypeError):
            bound.program(**good, y=1)
        bound.recorder.clear()
    assert [sys.getrefcount(item) for item in watched] == before


@needs_frees
@needs_counts
def test_memory_is_flat_over_a_million_calls(tmp_path: Path, toolchain: Toolchain) -> None:
    """The same fields, new fields, and objects that are read in every other way."""
    program = _host.load(build_stub(SDFG, PROGRAM, tmp_path, toolchain), build_null_library(SDFG, tmp_path))
    good = good_arguments()
    memory = np.zeros((EDGES, LEVELS))
    makers: list[Callable[[], Any]] = [
        lambda: edge_field(memory),
        lambda: edge_field(memory, domain({"Edge": (0, EDGES), "K": (0, LEVELS)})),
        lambda: memory[:],
        lambda: memoryview(memory),
        lambda: DLPack(memory, versioned=True),
        lambda: PublicField(memory),
    ]

    def run(rounds: int) -> None:
        for _ in range(rounds):
            for make in makers:
                vn = make()
                program(**{**good, "vn": vn})
                program(**{**good, "vn": vn})
            for _ in range(88):
                program(**good)

    run(300)
    before = held()
    run(10_000)
    assert growth(before) < 10_000  # a hundredth of the calls


def test_unloading_ends_the_handle(bound: Bound) -> None:
    def handles_of(function: str) -> list[int]:
        return [record.handle for record in bound.recorder.records() if record.function == function]

    program = bound.load()
    call(bound, program)
    (handle,) = handles_of("program")
    before = handles_of("exit")  # of programs of other tests, which may be collected at any time
    del program
    assert handles_of("exit").count(handle) == before.count(handle) + 1


UNLOADING = """
import gc, sys
import numpy as np
from gtstub import _host
from tests.support.hosting import EK, good_arguments

gc.disable()
memory = np.zeros(1024, np.uint8)
memory = memory[-memory.ctypes.data % 256 :][:256]
namespace = {"LEVEL": 1}
arguments = good_arguments()
watched = [memory, namespace, print, EK, *map(sys.intern, ("E2V", "LEVEL", "vn"))]
before = [sys.getrefcount(item) for item in watched]
for _ in range(20):
    program = _host.load(*sys.argv[1:3])
    program.set_workspace("CPU_Heap", memory)
    program.set_metrics(namespace, "LEVEL", 10, print)
    program(**arguments)
    del program
after = [sys.getrefcount(item) for item in watched]
print(after == before)
"""


def test_unloading_lets_go_of_everything(bound: Bound) -> None:
    """In a process where nobody else has what is counted: functions, and names that the interpreter shares."""
    assert run_script(UNLOADING, bound.stub, bound.library) == "True\n"
