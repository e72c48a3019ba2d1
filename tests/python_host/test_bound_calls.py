"""Bound calls of a program with every kind of argument, against what its SDFG gets in ordinary calls."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.python_host.test_shapes import arrays
from tests.support.handed_over import CError, CStep
from tests.support.hosting import EDGES, EK, LEVELS, Bound, PublicField, domain, edge_field, good_arguments, run_script
from tests.support.signatures import SHAPES_PROGRAM, SHAPES_SDFG, K, field, program, sdfg, symbol
from tests.support.signatures import array as array_argument

pytestmark = pytest.mark.sanitizer


def started(bound: Bound, call: _host.BoundCall) -> dict[str, Any]:
    bound.recorder.clear()
    call()
    (got,) = bound.recorder.calls()
    return got


def test_the_sdfg_gets_what_it_gets_in_a_call(bound: Bound) -> None:
    arguments, others = good_arguments(), good_arguments()
    bound.program(**arguments)
    expected = bound.last()
    call = bound.program.bind(**arguments)
    bound.program(**others)
    assert bound.last() != expected
    for _ in range(3):
        assert started(bound, call) == expected
    bound.program(**others)
    assert started(bound, call) == expected
    assert call.arguments == {
        "vn": arguments["vn"],
        "out": arguments["out"],
        "x[0]": arguments["x"][0],
        "x[1][0]": 3,
        "x[1][1]": arguments["x"][1][1],
        "n": 7,
        "flag": True,
        "E2V": arguments["offset_provider"]["E2V"],
    }


def test_scalars_of_all_kinds_are_set(bound: Bound) -> None:
    call = bound.program.bind(**good_arguments())
    call.set(n=np.int32(9), flag=False, x_1_0=5)
    got = started(bound, call)
    assert (got["n"], got["flag"], got["x_1_0"]) == (9, False, 5)
    call.set(**{"x[1][0]": 6})
    assert started(bound, call)["x_1_0"] == 6
    with pytest.raises(TypeError, match=r"Argument 'x\[1\]\[1\]' of program 'host' is not a scalar: bind the call"):
        call.set(x_1_1=2.0)
    with pytest.raises(ValueError, match=r"Argument 'n' of program 'host'"):
        call.set(flag=True, n=2**40)
    assert (started(bound, call)["flag"], started(bound, call)["n"]) == (False, 9)


def test_a_zero_dimensional_field_is_read_at_each_start(bound: Bound) -> None:
    arguments = good_arguments()
    call = bound.program.bind(**arguments)
    arguments["x"][1][1][...] = 4.25
    assert started(bound, call)["x_1_1"] == 4.25


def test_a_field_that_makes_its_array_anew_keeps_the_bound_one(bound: Bound) -> None:
    memory = np.zeros((5, 3))
    call = bound.program.bind(**{**good_arguments(), "vn": PublicField(memory)})
    address = memory.ctypes.data
    gone = weakref.ref(memory)
    del memory
    gc.collect()
    assert gone() is not None
    assert started(bound, call)["vn"] == address


def test_attributes_are_read_when_the_call_is_bound(bound: Bound) -> None:
    first, second = np.zeros(3, np.float32), np.zeros(3, np.float32)
    arguments = {**good_arguments(), "x": (first, (3, np.array(2.5)))}
    call = bound.program.bind(**arguments)
    arguments["x"] = (second, (3, np.array(2.5)))
    assert started(bound, call)["x_0"] == first.ctypes.data


def test_references_stay_flat(bound: Bound) -> None:
    arguments = good_arguments()
    watched = [arguments["vn"], arguments["out"], *arguments["x"], arguments["offset_provider"]["E2V"], bound.program]
    bound.program(**arguments)
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(100):
        call = bound.program.bind(**arguments)
        call()
        call.set(n=1)
        step = _host.Step([call] * 3)
        step()
        step.set(n=2)
        with pytest.raises(TypeError):
            call.set(n="2")
    del call, step
    assert [sys.getrefcount(each) for each in watched] == before


def test_a_cycle_of_calls_steps_and_callables_is_freed(bound: Bound) -> None:
    class Holder:
        def act(self) -> None:
            pass

    holder = Holder()
    holder.step = _host.Step([bound.program.bind(**good_arguments()), holder.act])  # type: ignore[attr-defined]
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_finalizer_may_start_a_call_that_is_being_freed(bound: Bound) -> None:
    seen: list[str] = []

    class Array(np.ndarray[Any, Any]):
        call: Any

        def __del__(self) -> None:
            try:
                self.call()
                seen.append("has run")
            except RuntimeError as error:
                seen.append(str(error))

    array = np.zeros(3, np.float32).view(Array)
    array.call = bound.program.bind(**{**good_arguments(), "x": (array, (3, np.array(2.5)))})
    del array
    gc.collect()
    assert seen in (["has run"], ["A bound call of program 'host' was started while it is being freed."])


def test_what_watches_calls_sees_starts(bound: Bound) -> None:
    call = bound.program.bind(**good_arguments())
    step = gtstub.Step([call, call])
    with gtstub.profile() as profile:
        call()
        step()
    assert sum(each.calls for each in profile.programs) == 3
    out = call.arguments["vn"]._ndarray
    out[2, 1] = np.nan
    with gtstub.checks("nan"):
        with pytest.raises(RuntimeError, match=r"'vn' of program 'host'.* nan"):
            call()
        with pytest.raises(RuntimeError, match=r"Step 'step' has stopped at position 1 of 2, program 'host': .* nan"):
            step()
    out[2, 1] = 0.0
    call()
    samples: list[float] = []
    namespace: dict[str, Any] = {"LEVEL": 0}
    program = bound.load()
    program.set_metrics(namespace, "LEVEL", 10, samples.append)
    call = program.bind(**good_arguments())
    steps = [_host.Step([call]), _host.Step([call])]
    for level in (0, 10, 10, 0, 7):
        namespace["LEVEL"] = level
        for action in (call, *steps):
            action()
            assert bound.last()["gt_metrics_level"] == level
    assert len(samples) == 6


def test_a_workspace_that_is_missing_is_an_error(bound: Bound) -> None:
    program = bound.load()
    call = program.bind(**good_arguments())
    bound.recorder.behaviour.workspace_bytes = 256
    try:
        with pytest.raises(RuntimeError, match=r"Program 'host' needs a workspace of 256 bytes in 'CPU_Heap', but"):
            call()
        room = np.zeros(512 + 256, np.uint8)
        room = room[-room.ctypes.data % 256 :][:512]
        program.set_workspace("CPU_Heap", room)
        call()
        call()
        program.set_workspace("CPU_Heap", room[:0])
        with pytest.raises(ValueError, match=r"needs a workspace of 256 bytes in 'CPU_Heap', but the one set has 0"):
            call()
    finally:
        bound.recorder.behaviour.workspace_bytes = 0


@pytest.mark.usefixtures("no_deadlock")
def test_two_threads_start_one_call_and_one_step(bound: Bound) -> None:
    call = bound.program.bind(**good_arguments())
    call()
    bound.recorder.clear()
    bound.recorder.behaviour.delay, bound.recorder.behaviour.overlaps = 200, 0
    refusals: list[str] = []
    step = _host.Step([call] * 5, "shared")

    def run() -> None:
        for _ in range(20):
            call()
            try:
                step()
            except RuntimeError as error:
                refusals.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        bound.recorder.behaviour.delay = 0
    assert bound.recorder.behaviour.overlaps == 0
    assert len(bound.recorder.calls()) == 3 * 20 + 5 * (3 * 20 - len(refusals))
    texts = {"Step 'shared' is running, in another thread or because one of its functions uses it."}
    assert set(refusals) <= texts


def test_a_forked_child_is_refused(bound: Bound) -> None:
    program = bound.load()
    call = program.bind(**good_arguments())
    call()
    step = _host.Step([call], "s")
    reading, writing = os.pipe()
    if os.fork() == 0:
        text = ""
        for action in (call, step):
            try:
                action()
            except RuntimeError as error:
                text += f"{error}\n"
        os.write(writing, text.encode())
        os._exit(0)
    os.wait()
    refusal = (
        "Program 'host' was loaded before this process was forked; load it again in the child, in Python by"
        " with_backend() or gtstub.compile()."
    )
    assert os.read(reading, 4096).decode().splitlines() == [
        refusal,
        f"Step 's' has stopped at position 1 of 1, program 'host': {refusal}",
    ]
    call()
    os.close(reading)
    os.close(writing)


def test_the_interpreter_may_end_with_calls_and_steps(bound: Bound) -> None:
    script = """
import sys
import gtstub
from gtstub import _host
from tests.support.hosting import good_arguments
program = _host.load(*sys.argv[1:])
call = program.bind(**good_arguments())
step = gtstub.Step([call, call])
sys.step = step  # lives longer than this module
step()
class Last:
    def __del__(self):
        step()
last = Last()
capture = _host.begin_capture()
print("ended")
"""
    assert run_script(script, bound.stub, bound.library) == "ended\n"


def test_debugging_refuses_what_was_changed_in_place(bound: Bound) -> None:
    script = """
import sys
import numpy as np
from gtstub import _host
from tests.support.hosting import good_arguments
program = _host.load(*sys.argv[1:])
x = np.zeros(6, np.float32)[:3]
arguments = {**good_arguments(), "x": (x, (3, np.array(2.5)))}
call = program.bind(**arguments)
call()
call()
x.strides = (8,)
try:
    call()
except ValueError as error:
    print(error)
"""
    text = run_script(
        script, bound.stub, bound.library, environment={"GTSTUB_DEBUG": "1", "PYTHONWARNINGS": "ignore"}.items()
    )
    assert text == (
        "Argument 'x[0]' of program 'host' was changed in place (shape, strides or memory) since an earlier call.\n"
    )


def test_debugging_sees_no_change_in_an_array_that_was_swapped(bound: Bound) -> None:
    """The stride of an axis of size 1 may be any number."""
    script = """
import sys
import numpy as np
from gtstub import _host
from tests.support.hosting import good_arguments
program = _host.load(*sys.argv[1:])
now, new = np.zeros(1, np.float32), np.zeros(4, np.float32)[::4]
calls = [program.bind(**{**good_arguments(), "x": (x, (3, np.array(2.5)))}) for x in (now, new)]
step = _host.Step(calls)
step()
step.swap(now, new)
step()
print(calls[0].arrays["x[0]"][3], calls[0].arguments["x[0]"] is new)
"""
    text = run_script(script, bound.stub, bound.library, environment={"GTSTUB_DEBUG": "1"}.items())
    assert text == "(1,) True\n"


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_a_step_of_many_programs(tmp_path: Any, toolchain: Toolchain, count: int) -> None:
    one = Bound(
        tmp_path,
        toolchain,
        sdfg(array_argument("a", Axis(stride=1)), symbol("__n", ("a", 0, "size")), name="one"),
        program("one", a=field(K)),
    )
    arrays = [np.zeros(3) for _ in range(count)]
    step = _host.Step([one.program.bind(a) for a in arrays])
    step()
    one.recorder.clear()
    step()
    assert [got["a"] for got in one.recorder.calls()] == [a.ctypes.data for a in arrays]


def test_domains_count(bound: Bound) -> None:
    call = bound.program.bind(**{**good_arguments(), "vn": edge_field(on=EK)})
    got = started(bound, call)
    assert (got["__vn_Edge_range_0"], got["__vn_Edge_range_1"]) == (0, 5)


def test_calls_after_a_start_have_their_own_scalars(bound: Bound) -> None:
    """The last number of a scalar is recognised: its slot must have its value, whatever was started in between."""
    arguments = {**good_arguments(), "n": 12345}
    call = bound.program.bind(**{**arguments, "n": 9})
    for _ in range(3):
        bound.program(**arguments)
        assert bound.last()["n"] == 12345
        assert started(bound, call)["n"] == 9
        bound.program(**arguments)
        with gtstub.profile():
            assert started(bound, call)["n"] == 9
        bound.program(**arguments)
        assert bound.last()["n"] == 12345
        call.set(n=9)
        bound.program(**arguments)
        assert bound.last()["n"] == 12345
        with pytest.raises(TypeError):
            call.set(n=8, flag=None)
        bound.program(**arguments)
        assert (bound.last()["n"], bound.last()["flag"]) == (12345, True)


def test_sizes_that_a_scalar_determines_are_those_of_the_bound_arrays(tmp_path: Path, toolchain: Toolchain) -> None:
    shapes = Bound(tmp_path, toolchain, SHAPES_SDFG, SHAPES_PROGRAM)
    call = shapes.program.bind(**arrays(m=5), M=5)
    shapes.program(**arrays(m=6), M=6)
    assert started(shapes, call)["M"] == 5
    with pytest.raises(ValueError, match=r"Argument 'table' of program 'shapes' must have size M\*N = 24"):
        call.set(M=6)
    assert started(shapes, call)["M"] == 5


def test_an_exception_of_a_new_scalar_stays_when_a_step_is_set(bound: Bound) -> None:
    class OddError(Exception):
        def __init__(self, code: int, place: int) -> None:
            super().__init__(code, place)

    class Number:
        def __index__(self) -> int:
            raise OddError(1, 2)

    step = _host.Step([bound.program.bind(**good_arguments())], name="odd")
    with pytest.raises(OddError) as caught:
        step.set(n=Number())
    (note,) = caught.value.__notes__
    assert note == (
        "Step 'odd' cannot be changed at position 1, program 'host': a scalar could not be read. Nothing has changed."
    )


def test_a_call_after_set_reads_every_field(bound: Bound) -> None:
    arguments = good_arguments()
    for _ in range(3):
        bound.program(**arguments)
    bound.program.bind(**arguments).set(n=3)
    memory = np.zeros((5, 3))
    object.__setattr__(arguments["vn"], "_ndarray", memory)
    bound.program(**arguments)
    assert bound.last()["vn"] == memory.ctypes.data


def test_a_swap_binds_no_call_again(bound: Bound) -> None:
    """Binding a call has the program forget the objects of other calls, which are read again."""

    class Counted:
        _domain, memory, reads = EK, np.zeros((5, 3)), 0

        @property
        def _ndarray(self) -> np.ndarray:
            self.reads += 1
            return self.memory

    now, new, counted = edge_field(), edge_field(), Counted()
    others = {**good_arguments(), "vn": counted}
    call = bound.program.bind(**{**good_arguments(), "vn": now, "out": new})
    step = _host.Step([call])
    for number in range(3):
        step.swap(now, new)
        before = counted.reads
        for _ in range(3):
            bound.program(**others)
        assert (counted.reads == before) == (number > 0)
    got = started(bound, call)
    assert (got["vn"], got["out"]) == (new._ndarray.ctypes.data, now._ndarray.ctypes.data)


def test_arrays_of_another_layout_are_swapped(bound: Bound) -> None:
    """The program takes any strides, so that the call is bound again."""
    now, new = edge_field(), edge_field(np.zeros((EDGES, 2 * LEVELS))[:, ::2])
    call = bound.program.bind(**{**good_arguments(), "vn": now, "out": new})
    expected = bound.program.bind(**{**good_arguments(), "vn": new, "out": now})
    _host.Step([call]).swap(now, new)
    kept, wanted = started(bound, call), started(bound, expected)
    for name in wanted:
        if name.strip("_").startswith(("vn", "out")):
            assert kept[name] == wanted[name], name
    assert call.arguments["vn"] is new


def test_zero_dimensional_fields_are_swapped(bound: Bound) -> None:
    now, new, small = np.array(2.5), np.array(3.5), np.array(4.5, np.float32)
    vn = edge_field(), edge_field(np.zeros((EDGES, 2 * LEVELS))[:, ::2])

    def bind(value: np.ndarray, vn: object) -> _host.BoundCall:
        arguments = good_arguments()
        return bound.program.bind(**{**arguments, "vn": vn, "x": (arguments["x"][0], (3, value))})

    calls = [bind(now, vn[0]), bind(new, vn[1])]
    step = _host.Step([*calls, gtstub.action(print, small)])

    def values() -> list[Any]:
        return [started(bound, call)["x_1_1"] for call in calls]

    step.swap(now, new)
    assert values() == [3.5, 2.5]
    step.swap(now, new, *vn)  # which binds the calls again
    assert values() == [2.5, 3.5]
    step.swap(now[...], new[...])
    assert values() == [3.5, 2.5]
    with pytest.raises(
        ValueError, match=r"Argument 'x\[1\]\[1\]' of program 'host' has no axes: it is swapped only with"
    ):
        step.swap(now, small)
    assert values() == [3.5, 2.5]
    new[...] = 5.5
    assert values() == [5.5, 2.5]


def test_an_element_of_a_swapped_array_is_refused(bound: Bound) -> None:
    """A zero-dimensional field would go on with the element of the other array."""
    arguments = good_arguments()
    now, new = arguments["vn"], arguments["out"]
    element = now._ndarray[1, 2, ...]
    call = bound.program.bind(**{**arguments, "x": (arguments["x"][0], (3, element))})
    text = "shares elements with array 1 of the swap, but differs in address, type, size, stride or origin"
    with pytest.raises(ValueError, match=rf"Argument 'x\[1\]\[1\]' of program 'host' {text}"):
        _host.Step([call]).swap(now, new)
    gtstub.hand_over(_host.Step([call]), "element")
    step = CStep("element")
    with pytest.raises(CError, match=rf"Argument 'x\[1\]\[1\]' of program 'host' {text}"):
        step.swap(now._ndarray, new._ndarray)
    step.free()
    gtstub.take_back("element")
    with pytest.raises(ValueError, match=rf"function 'print': array 1 {text}"):
        _host.Step([bound.program.bind(**arguments), gtstub.action(print, element)]).swap(now, new)
    assert call.arguments["vn"] is now


@pytest.mark.usefixtures("no_deadlock")
def test_code_of_an_argument_does_not_wait_for_its_own_call(bound: Bound) -> None:
    errors: list[str] = []

    class Changing:
        _domain, memory = EK, np.zeros((EDGES, LEVELS))

        @property
        def _ndarray(self) -> np.ndarray:
            for change in (lambda: call.set(n=1), lambda: step.set(n=1), lambda: step.swap(now, new)):
                with pytest.raises(RuntimeError) as caught:
                    change()
                errors.append(str(caught.value))
            return self.memory

    arguments = good_arguments()
    now, new = arguments["vn"], arguments["out"]
    call = bound.program.bind(**arguments)
    step = _host.Step([call])
    bound.program(**{**arguments, "vn": Changing()})
    assert errors == ["Program 'host' was called while it was reading the arguments of another call."] * 3
    step.swap(now, new)
    call.set(n=1)


def test_a_refused_swap_keeps_nothing(bound: Bound) -> None:
    arguments = good_arguments()
    now, new = arguments["vn"], arguments["out"]
    memory, on = now._ndarray, domain({"Edge": (0, EDGES), "K": (0, LEVELS)})
    step = _host.Step([bound.program.bind(**arguments)])

    def refuse() -> None:
        with pytest.raises(ValueError, match=r"^Arrays 1 and 2 of swap\(\) are the same\.$"):
            step.swap(now, edge_field(memory, on))

    refuse()
    before = sys.getrefcount(on), sys.getrefcount(now), sys.getrefcount(new)
    for _ in range(100):
        refuse()
    assert (sys.getrefcount(on), sys.getrefcount(now), sys.getrefcount(new)) == before
