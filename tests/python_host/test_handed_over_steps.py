"""Steps that Python hands over, in C hosts that the tests load, on programs that multiply a field by a factor."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import sys
import weakref
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.support.handed_over import (
    RUNTIME_ERROR,
    TYPE_ERROR,
    VALUE_ERROR,
    CError,
    CStep,
    build_fortran_host,
    in_thread,
    refused,
)
from tests.support.hosting import Bound
from tests.support.scale_program import PROGRAM, SDFG, N
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import array, sdfg, symbol
from tests.support.stubs import build_stub

pytestmark = [pytest.mark.sanitizer, pytest.mark.usefixtures("no_deadlock", "nothing_left")]


# --- The same step ----------------------------------------------------------------------------------------------------


def test_a_host_finds_the_step_in_its_own_libgtstub(library: Path, scale: _host.Program, now: Any, new: Any) -> None:
    """The process does not load the host's libgtstub, because it has one of this name, which Python uses."""
    host = ctypes.CDLL(str(library))
    with gtstub.hand_over(gtstub.Step([scale.bind(now, 2.0, new)], "dynamics"), "step"):
        assert in_thread(host, "step", 2) == ""
    assert new.tolist() == [2.0] * N


def test_changes_of_both_sides(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    seen: list[Any] = []
    inner = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(seen.append, new)], "inner")
    step = gtstub.Step([inner], "outer")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        step.set(factor=3.0)
        c.run()
        assert new.tolist() == [3.0] * N
        c.set(ctypes.c_double(4.0))
        step()
        assert new.tolist() == [4.0] * N
        assert inner[0].arguments["factor"] == 4.0  # type: ignore[union-attr]
        c.swap(now, new)
        step()
        assert now.tolist() == [16.0] * N
        assert [each is now for each in seen] == [False, False, True]
        step.swap(now, new)
        c.run()
        assert new.tolist() == [64.0] * N
        inner.actions = [scale.bind(now, 5.0, new)]
        c.run()
        assert new.tolist() == [80.0] * N
        c.free()


def test_what_only_actions_have_is_swapped(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    spare, seen = np.zeros(N), []
    step = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(lambda *all: seen.append(all), spare, "west")])
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        c.swap(new, spare)
        c.run()
        c.free()
    assert seen[0][0] is new
    assert spare.tolist() == [2.0] * N


def test_what_only_an_action_has_is_swapped_with_its_like_alone(
    scale: _host.Program, now: np.ndarray, new: np.ndarray
) -> None:
    """The program would get an array of another shape, without a check of its domain."""
    step = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(lambda of: None, other := np.zeros((N, 1)))], "both")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        with refused(
            VALUE_ERROR, "Arrays of step 'both' cannot be swapped: they differ in type, size, stride or origin."
        ):
            c.swap(new, other)
        c.free()


@pytest.fixture
def strided(tmp_path: Path, toolchain: Toolchain) -> _host.Program:
    """A program 'scale' that takes any strides, and does nothing."""
    signature = sdfg(
        array("out", Axis(), access="write"),
        array("x", Axis()),
        symbol("__s", ("out", 0, "stride")),
        symbol("__t", ("x", 0, "stride")),
        symbol("factor", dtype="float64"),
        name="scale",
    )
    return _host.load(build_stub(signature, PROGRAM, tmp_path, toolchain), build_null_library(signature, tmp_path))


def test_sections_that_c_may_mean(strided: _host.Program) -> None:
    """An address does not say whether C means every second element, or all of them."""
    now, new = np.ones(2 * N), np.zeros(2 * N)
    step = gtstub.Step([strided.bind(now[each::2], 2.0, new[each::2]) for each in (0, 1)], "dynamics")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        with refused(
            VALUE_ERROR,
            "Step 'dynamics' cannot be changed at position 2, program 'scale': Argument 'x' of program 'scale' lies "
            "between the elements of array 1 of the swap, as another section of the same array would: swap both in "
            "Python. Nothing has changed.",
        ):
            c.swap(now, new)
        with refused(
            RUNTIME_ERROR,
            "Step 'dynamics' was handed over: its arrays are objects, which are swapped one by one with "
            "gts_step_swap().",
        ):
            addresses = (ctypes.c_void_p(each.ctypes.data) for each in (now, new))
            c.done(c.c.gts_step_swap_memory(c.handle, *addresses, ctypes.c_size_t(now.nbytes)))
        assert [call.arguments["x"].base is now for call in step] == [True, True]  # type: ignore[union-attr]
        step.swap(*(call.arguments[name] for call in step for name in ("x", "out")))  # type: ignore[union-attr]
        c.run()
        assert [call.arguments["x"].base is new for call in step] == [True, True]  # type: ignore[union-attr]
        c.free()


def test_changes_from_c_are_refused(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    def change() -> None:
        busy = "Step 'dynamics' is running, in another thread or because one of its functions uses it."
        with refused(RUNTIME_ERROR, busy):
            c.set(ctypes.c_double(3.0))

    step = gtstub.Step([scale.bind(now, 2.0, new), change], "dynamics")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        with refused(TYPE_ERROR, "No program of step 'dynamics' has an argument 'dtime'."):
            c.set(ctypes.c_double(3.0), name="dtime")
        where = "Step 'dynamics' cannot be changed at position 1, program 'scale': Argument"
        same = "Nothing has changed."
        with refused(TYPE_ERROR, f"{where} 'factor' of program 'scale' must have dtype 'float64', not 'int32'. {same}"):
            c.set(ctypes.c_int32(3), 6)
        with refused(
            TYPE_ERROR, f"{where} 'x' of program 'scale' is not a scalar: bind the call again to change it. {same}"
        ):
            c.set(ctypes.c_double(3.0), name="x")
        with refused(VALUE_ERROR, "Arrays of step 'dynamics' cannot be swapped: no program of it has the second one."):
            c.swap(now, np.ones(N))
        with refused(VALUE_ERROR, "Arrays of step 'dynamics' cannot be swapped: the two are the same."):
            c.swap(now, now)
        c.run()
        c.free()
    assert step[0].arguments == {"x": now, "factor": 2.0, "out": new}  # type: ignore[union-attr]


def test_a_step_of_c_contains_one(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    class Action(ctypes.Structure):
        _fields_ = tuple(
            (each, ctypes.c_void_p) for each in ("call", "function", "data", "name", "step", "f", "a", "n")
        )

    with gtstub.hand_over(gtstub.Step([scale.bind(now, 2.0, new)], "inner"), "step"):
        c = CStep("step")
        action = Action(step=c.handle)
        inner, c.handle = c.handle, ctypes.c_void_p()
        assert c.c.gts_step_new(b"outer", ctypes.byref(action), ctypes.c_size_t(1), ctypes.byref(c.handle)) == 0
        c.c.gts_step_free(ctypes.byref(inner))
        c.run()
        with refused(
            RUNTIME_ERROR,
            "Step 'outer' cannot be changed: step 'inner' inside it was handed over, and must be changed by itself.",
        ):
            c.set(ctypes.c_double(3.0))
    assert new.tolist() == [2.0] * N
    with refused(
        RUNTIME_ERROR,
        "Step 'outer' has stopped at position 1 of 1, step 'inner': Step 'inner' cannot be used: it was taken back.",
    ):
        c.run()
    c.free()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_fortran(tmp_path: Path, scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    host = ctypes.CDLL(str(build_fortran_host(tmp_path)))
    text = ctypes.create_string_buffer(1024)
    arguments = (ctypes.c_double(3.0), *(ctypes.c_void_p(each.ctypes.data) for each in (now, new)), text)
    assert host.use_step(*arguments) == VALUE_ERROR
    assert text.value == b"No step was handed over as 'step', nor under any other name."
    step = gtstub.Step([scale.bind(now, 2.0, new)], "dynamics")
    with gtstub.hand_over(step, "step"):
        assert host.use_step(*arguments) == 0
        assert (new.tolist(), now.tolist()) == ([3.0] * N, [9.0] * N)
        step.actions = [lambda: exchange(new)]
        assert host.run_again(text) == RUNTIME_ERROR
        assert text.value == (
            b"Step 'dynamics' has stopped at position 1 of 1, function 'test_fortran.<locals>.<lambda>': "
            b"LookupError: no neighbor."
        )
    assert host.run_again(text) == RUNTIME_ERROR
    assert text.value == b"Step 'dynamics' cannot be used: it was taken back."
    host.free_step()


# --- Names and lifetimes ----------------------------------------------------------------------------------------------


def test_names(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    step, other = gtstub.Step([scale.bind(now, 2.0, new)], "dynamics"), gtstub.Step([], "physics")
    with gtstub.hand_over(step, "a"):
        in_use = r"another step has this name, and must be taken back first\.$"
        with pytest.raises(ValueError, match=f"^Step 'physics' cannot be handed over as 'a': {in_use}"):
            gtstub.hand_over(other, "a")
        with pytest.raises(
            ValueError, match=r"^Step 'dynamics' cannot be handed over as 'b': it is handed over already, as 'a'\.$"
        ):
            gtstub.hand_over(step, "b")
        with gtstub.hand_over(other, "b"), refused(VALUE_ERROR, "No step was handed over as 'c', only 'a', 'b'."):
            CStep("c")
        with pytest.raises(ValueError, match=r"^No step was handed over as 'b', only 'a'\.$"):
            gtstub.take_back("b")
    with pytest.raises(TypeError, match="Argument 'step' of 'hand_over' must be a step, not 'function'"):
        gtstub.hand_over(test_names, "a")  # type: ignore[arg-type]


def test_python_keeps_the_step_until_it_is_taken_back(scale: _host.Program, new: np.ndarray) -> None:
    now = np.ones(N)
    step = gtstub.Step([gtstub.Step([scale.bind(now, 2.0, new)])], "dynamics")
    gone, array = weakref.ref(step), weakref.ref(now)
    gtstub.hand_over(step, "step")
    del step, now
    gc.collect()
    c = CStep("step")
    c.run()
    assert new.tolist() == [2.0] * N
    gtstub.take_back("step")
    gc.collect()
    assert gone() is None
    assert array() is None
    for use in (c.run, lambda: c.set(ctypes.c_double(1.0)), lambda: c.swap(new, new)):
        with refused(RUNTIME_ERROR, "Step 'dynamics' cannot be used: it was taken back."):
            use()
    c.free()


def test_a_step_that_was_taken_back_is_python_s(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    step = gtstub.Step([scale.bind(now, 2.0, new)], "dynamics")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
    step()
    with gtstub.hand_over(gtstub.Step([step], "outer"), "outer"):
        outer = CStep("outer")
        outer.run()  # it need not be handed over itself
        outer.free()
        with pytest.raises(CError, match="Step 'dynamics' cannot be used: it was taken back"):
            c.run()
    with gtstub.hand_over(step, "again"):
        c.run()
    c.free()


# --- Errors -----------------------------------------------------------------------------------------------------------


def exchange(_: Any) -> None:
    raise LookupError("no neighbor")


def test_exceptions_of_functions(scale: _host.Program, now: Any, new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: unraisable.append((what.object, what.exc_value)))
    inner = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(exchange, new)], "inner")
    with gtstub.hand_over(gtstub.Step([inner], "outer"), "step"):
        c = CStep("step")
        with refused(
            RUNTIME_ERROR,
            "Step 'outer' has stopped at position 1 of 1, step 'inner': Step 'inner' has stopped at position 2 of 2, "
            "function 'exchange': LookupError: no neighbor. Position 1 has run.",
        ):
            c.run()
        ((where, error),) = unraisable
        assert where is inner[1]
        assert error.__traceback__.tb_frame.f_code is exchange.__code__
        unraisable.clear()
        inner.actions = [gtstub.action(len)]  # an exception without a traceback
        with refused(
            TYPE_ERROR,
            "Step 'outer' has stopped at position 1 of 1, step 'inner': Step 'inner' has stopped at position 1 of 1, "
            "function 'len': TypeError: len() takes exactly one argument (0 given).",
        ):
            c.run()
        inner.actions = []
        c.run()
        c.free()
    assert unraisable == []
    assert not sys.exc_info()[0]


def test_checks_see_the_step(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    step = gtstub.Step([scale.bind(now, 2.0, new), scale.bind(new, 2.0, now)], "dynamics")
    with gtstub.hand_over(step, "step"), gtstub.checks("nan"):
        c = CStep("step")
        c.run()
        new[1] = now[1] = np.nan
        with refused(
            RUNTIME_ERROR,
            "Step 'dynamics' has stopped at position 1 of 2, program 'scale': Argument 'x' of program 'scale' is nan "
            "at K 1 before the call; check 'nan' refuses 1 of 5 elements.",
        ):
            c.run()
        c.free()


def test_errors_of_programs(toolchain: Toolchain, tmp_path: Path) -> None:
    """From a start without the GIL, and from one with it."""
    bound = Bound(tmp_path, toolchain, dataclasses.replace(SDFG, init=("__n",), memory_symbols=("__n",)), PROGRAM)
    step = gtstub.Step([list, bound.program.bind(np.ones(N), 2.0, np.zeros(N))], "dynamics")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        c.run()
        bound.program(np.ones(2 * N), 2.0, np.zeros(2 * N))  # now the start has to initialise the SDFG
        bound.recorder.behaviour.init_fails = True
        for observed in (nullcontext(), gtstub.profile()):
            with (
                observed,
                refused(
                    RUNTIME_ERROR,
                    "Step 'dynamics' has stopped at position 2 of 2, program 'scale': The SDFG of program 'scale' "
                    "could not be initialised (__dace_init returned NULL). Position 1 has run.",
                ),
            ):
                c.run()
        bound.recorder.behaviour.init_fails = False
        c.run()
        c.free()


def test_a_class_with_a_call_of_its_own(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """C calls it inside a step, and refuses to take it for one."""

    class Counted(gtstub.Step):
        calls = 0

        def __call__(self) -> None:
            self.calls += 1
            super().__call__()

    inner = Counted([scale.bind(now, 2.0, new)], "inner")
    with pytest.raises(TypeError, match=r"Step 'inner' cannot be handed over: its class '.*Counted' has a '__call__'"):
        gtstub.hand_over(inner, "inner")
    with gtstub.hand_over(gtstub.Step([inner], "outer"), "outer"):
        step = CStep("outer")
        step.run()
        step.free()
    assert inner.calls == 1
    np.testing.assert_array_equal(new, 2.0 * now)


# --- Observed ---------------------------------------------------------------------------------------------------------


def test_profiles_see_the_step(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    step = gtstub.Step([scale.bind(now, 2.0, new), gtstub.Step([gtstub.action(list)], "inner")], "dynamics")
    with gtstub.hand_over(step, "step"), gtstub.profile() as report:
        c = CStep("step")
        c.run()
        c.run()
        c.free()
    (program,) = report.programs
    assert (program.name, program.calls) == ("scale", 2)
    assert {(each.name, position.name, position.calls) for each in report.steps for position in each.positions} == {
        ("dynamics", "scale", 2),
        ("dynamics", "inner", 2),
        ("inner", "list", 2),
    }
