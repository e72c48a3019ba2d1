"""Python and C call one and the same program: each call runs on its own arrays, whatever the other host has passed."""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.tools.recorded.runtime import runtime
from tests.support.c_program import CProgram, handle_of
from tests.support.hosting import Bound, Field, domain
from tests.support.random_programs import FieldValue
from tests.support.signatures import GATHER_PROGRAM, GATHER_SDFG, program, scalar, sdfg, symbol

pytestmark = pytest.mark.sanitizer

EDGES, VERTICES = 3, 4


class Arguments:
    """Those of one call, as either host takes them; what they do not say is new."""

    def __init__(self, start: int, x: Any = None, table: Any = None) -> None:
        self.start = start
        self.x = np.zeros(VERTICES) if x is None else x
        self.out = np.zeros(EDGES)
        self.table = np.full((EDGES, 2), start + 1, np.int32) if table is None else table
        # A Python host recognises objects, so each call passes the same ones.
        x_field = Field(domain({"Vertex": (start, start + VERTICES)}), self.x)
        out_field = Field(domain({"Edge": (0, EDGES)}), self.out)
        self.of_python = {"x": x_field, "out": out_field, "offset_provider": {"E2V": self.table}}
        self.of_c = {
            "x": FieldValue(self.x, (start,), ("Vertex",)),
            "out": FieldValue(self.out, (0,), ("Edge",)),
            "gt_conn_E2V": FieldValue(self.table, (0, 0), ("Edge", "E2V")),
        }

    @property
    def slots(self) -> dict[str, int]:
        """What the SDFG must get."""
        return {
            "x": self.x.ctypes.data,
            "out": self.out.ctypes.data,
            "gt_conn_E2V": self.table.ctypes.data,
            "__x_Vertex_range_0": self.start,
        }


class Shared:
    """A program that Python has loaded, and C calls as well."""

    def __init__(self, bound: Bound) -> None:
        self.recorder = bound.recorder
        self.python = bound.load()
        first = Arguments(0)
        self.c = CProgram(handle_of(self.python), bound.stub, GATHER_SDFG, first.of_c)

    def call_from_python(self, arguments: Arguments) -> Mapping[str, Any]:
        self.python(**arguments.of_python)
        return self._arrived(arguments)

    def call_from_c(self, arguments: Arguments) -> Mapping[str, Any]:
        assert self.c(arguments.of_c) is None
        return self._arrived(arguments)

    def _arrived(self, arguments: Arguments) -> Mapping[str, Any]:
        """Those of the slots that the arguments tell apart."""
        found = self.recorder.calls()[-1]
        return {name: found[name] for name in arguments.slots}


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("shared"), toolchain, GATHER_SDFG, GATHER_PROGRAM)


@pytest.fixture
def shared(bound: Bound) -> Iterator[Shared]:
    yield Shared(bound)
    bound.recorder.clear()


def test_each_call_runs_on_its_own_arrays(shared: Shared) -> None:
    of_python, of_c = Arguments(0), Arguments(5)
    both = Arguments(2)
    partly_pythons = Arguments(7, x=of_python.x, table=np.full((EDGES, 2), 7, np.int32))  # its memory, elsewhere
    partly_cs = Arguments(5, x=of_c.x, table=of_c.table)
    from_python, from_c = shared.call_from_python, shared.call_from_c
    calls: list[tuple[Callable[[Arguments], Mapping[str, Any]], Arguments]] = [
        (from_python, of_python),
        (from_python, both),
        (from_python, partly_cs),
        (from_c, of_c),
        (from_c, both),
        (from_c, partly_pythons),
    ]
    for sequence in itertools.product(calls, repeat=3):
        for call, arguments in sequence:
            assert call(arguments) == arguments.slots
        shared.recorder.clear()


def test_any_order(shared: Shared) -> None:
    """Arrays of one host and of both, alone and in each other's company."""
    pythons = [Arguments(start) for start in range(3)]
    tables = [np.full((EDGES, 2), 6, np.int32) for _ in range(2)]
    cs = [Arguments(5, x=pythons[i % 3].x, table=tables[i % 2]) for i in range(5)]
    order = random.Random(6)
    for _ in range(500):
        if order.random() < 0.3:
            arguments = order.choice(pythons)
            assert shared.call_from_python(arguments) == arguments.slots
        else:
            arguments = order.choice(cs)
            assert shared.call_from_c(arguments) == arguments.slots


def test_a_compiled_program_and_c(shared: Shared) -> None:
    """A call site compares only what it passes, unless the other host has called meanwhile."""
    of_python, of_c = Arguments(0), Arguments(5)
    provider = of_python.of_python.pop("offset_provider")

    def compile_with(*names: str) -> _host.Dispatcher:
        bound = {name: of_python.of_python[name] for name in names}
        return _host.Dispatcher("gather", lambda *_: shared.python, ("x", "out"), bound, offset_providers=(provider,))

    without_x, without_any = compile_with("out"), compile_with("out", "x")
    for call in (lambda: without_x(x=of_python.of_python["x"]), without_any):
        for times in (8, 1, 8):  # all is recognised from the seventh call on
            for _ in range(times):
                call()
                assert {name: shared.recorder.calls()[-1][name] for name in of_python.slots} == of_python.slots
            assert shared.call_from_c(of_c) == of_c.slots


def test_what_is_said_of_an_origin_is_for_neither(shared: Shared) -> None:
    of_python, of_c = Arguments(0), Arguments(5)
    for origin in (0, 9):
        shared.call_from_python(of_python)
        shared.c.set_origin("x", origin)
        assert shared.call_from_python(of_python) == of_python.slots
        shared.c.set_origin("x", origin + 1)
        assert shared.call_from_c(of_c) == of_c.slots
        shared.c.set_origin("x", origin + 2)
        assert shared.call_from_c(of_c) == of_c.slots


def test_an_index_base_is_that_of_cs_tables(shared: Shared) -> None:
    arguments = Arguments(0, table=np.array([[1, 2], [3, 0], [2, 1]], np.int32))  # which are indices in either base
    in_base_0 = (arguments.table - 1).tobytes()
    rest = {name: value for name, value in arguments.slots.items() if name != "gt_conn_E2V"}
    for _ in range(2):
        assert shared.call_from_python(arguments) == arguments.slots
        assert shared.call_from_c(arguments) == arguments.slots
        shared.c.set_index_base("E2V", 1)
        for call in (shared.call_from_c, shared.call_from_c, shared.call_from_python, shared.call_from_c):
            slots = dict(call(arguments))
            if call == shared.call_from_python:
                assert slots == arguments.slots
            else:
                assert ctypes.string_at(slots.pop("gt_conn_E2V"), len(in_base_0)) == in_base_0
                assert slots == rest
        shared.c.set_index_base("E2V", 0)
        assert shared.call_from_c(arguments) == arguments.slots
        assert shared.call_from_python(arguments) == arguments.slots
        shared.c.set_index_base("E2V", 1)
        assert shared.call_from_python(arguments) == arguments.slots
        shared.c.set_index_base("E2V", 0)


def test_a_refused_call_leaves_nothing_to_the_other_host(shared: Shared) -> None:
    of_python, of_c = Arguments(0), Arguments(5)
    no_vertex = Arguments(5, x=of_python.x, table=np.full((EDGES, 2), 99, np.int32))
    for _ in range(2):
        assert shared.call_from_python(of_python) == of_python.slots
        message = shared.c(no_vertex.of_c)
        assert message is not None
        assert message.startswith("Connectivity 'E2V' of program 'gather' has index 99 in row 0, column 0")
        assert shared.call_from_python(of_python) == of_python.slots
        assert shared.call_from_c(of_c) == of_c.slots
        with pytest.raises(TypeError, match="must be a field"):
            shared.python(**{**of_python.of_python, "out": "no field"})
        assert shared.call_from_c(of_c) == of_c.slots


def test_objects_die_while_c_has_their_program(shared: Shared) -> None:
    for start in range(4):
        of_python = Arguments(start)
        for _ in range(3):  # the second time an object is remembered
            assert shared.call_from_python(of_python) == of_python.slots
        of_c = Arguments(start, x=of_python.x)
        del of_python
        assert shared.call_from_c(of_c) == of_c.slots


@pytest.fixture
def bound_scalar(tmp_path: Path, toolchain: Toolchain) -> Bound:
    signature = program("scalar", n=scalar("int32"))
    return Bound(tmp_path, toolchain, sdfg(symbol("n"), name="scalar"), signature)


def test_c_may_not_pass_null_for_scalars(bound_scalar: Bound) -> None:
    loaded = bound_scalar.load()
    call = ctypes.CDLL(str(bound_scalar.stub)).scalar_call
    for _ in range(2):
        assert call(handle_of(loaded), None) == -1
        message: bytes = runtime().gts_last_error(handle_of(loaded)).contents.message
        assert message == b"The arguments of program 'scalar' must be a struct, not NULL."
        loaded(3)
    assert [record["n"] for record in bound_scalar.recorder.calls()] == [3, 3]
