"""Bound calls and steps from Python, on programs that multiply a field by a factor."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from tests.support.scale_program import N


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(1.0, N + 1)


@pytest.fixture
def out() -> np.ndarray:
    return np.zeros(N)


# --- Bound calls ------------------------------------------------------------------------------------------------------


def test_a_bound_call_runs_with_its_arguments(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    call = scale.bind(x, 2.0, out)
    assert not out.any()  # nothing has run
    for _ in range(3):
        out[:] = 0
        call()
        assert out.tolist() == (2 * x).tolist()
    other = np.zeros(2 * N)
    scale(np.ones(2 * N), 3.0, other)  # another size, in between
    call()
    assert (out.tolist(), other.tolist()) == ((2 * x).tolist(), [3.0] * 2 * N)
    assert repr(call) == "<gtstub bound call of 'scale'>"
    assert (call.__name__, call.program, call.device, call.written) == ("scale", scale, "cpu", ["out"])


def test_bound_calls_keep_their_arrays(scale: _host.Program, out: np.ndarray) -> None:
    x = np.ones(N)
    call = scale.bind(x=x, factor=2.0, out=out)
    gone = weakref.ref(x)
    assert call.arguments == {"x": x, "factor": 2.0, "out": out}
    del x
    gc.collect()
    call()
    assert out.tolist() == [2.0] * N
    assert gone() is not None
    del call
    assert gone() is None


def test_scalars_can_be_changed(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    call = scale.bind(x, 2.0, out)
    call()
    call.set(factor=3.0)
    call()
    assert out.tolist() == (3 * x).tolist()
    assert call.arguments["factor"] == 3.0
    scale(x, 7.0, out)
    call()
    assert out.tolist() == (3 * x).tolist()


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"factor": "2"}, TypeError, "Argument 'factor' of program 'scale'"),
        ({"x": 3.0}, TypeError, "Argument 'x' of program 'scale' is not a scalar: bind the call again to change it."),
        ({"f": 3.0}, TypeError, "Program 'scale' has no argument 'f'."),
        ({"factor": 3.0, "f": 1.0}, TypeError, "Program 'scale' has no argument 'f'."),
    ],
)
def test_refused_scalars_change_nothing(
    scale: _host.Program, x: np.ndarray, out: np.ndarray, change: dict[str, Any], kind: type[Exception], text: str
) -> None:
    call = scale.bind(x, 2.0, out)
    with pytest.raises(kind, match=text):
        call.set(**change)
    call()
    assert out.tolist() == (2 * x).tolist()
    with pytest.raises(TypeError, match=r"set\(\) takes scalars by keyword only"):
        call.set(3.0)


def test_contracts_are_checked_when_a_call_is_bound(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"size of axis 0 of 'x'|size of axis 0 of 'out'"):
        scale.bind(x, 2.0, np.zeros(N + 1))
    with pytest.raises(TypeError, match=r"scale\(\) missing 1 required positional argument: 'out'"):
        scale.bind(x, 2.0)
    with pytest.raises(TypeError, match=r"scale\(\) got multiple values for argument 'x'"):
        scale.bind(x, 2.0, out, x=x)
    with pytest.raises(TypeError, match="A bound call of program 'scale' takes no arguments; change scalars with set"):
        scale.bind(x, 2.0, out)(1)
    with pytest.raises(TypeError, match="it has called 0 programs of gtstub, not one"):
        _host.bind(len, [1])
    with pytest.raises(TypeError, match=r"bind\(\) needs a callable"):
        _host.bind()
    scale(x, 1.0, out)  # the program runs again after all of these
    assert out.tolist() == x.tolist()


def test_what_is_bound_need_not_be_the_program_itself(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    call = _host.bind(lambda factor: scale(x, factor, out), 4.0)
    assert not out.any()
    call()
    assert out.tolist() == (4 * x).tolist()


# --- Steps ------------------------------------------------------------------------------------------------------------


def test_a_step_does_its_actions_in_order(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    seen: list[list[float]] = []
    actions = [scale.bind(x, 2.0, out), lambda: seen.append(out.tolist()), scale.bind(out, 10.0, x)]
    step = _host.Step(actions, name="double")
    assert (len(step), list(step), step[-1], step.__name__) == (3, actions, actions[2], "double")
    assert repr(step) == "<gtstub step 'double' (3 positions)>"
    expected = x.copy()
    for _ in range(3):
        step()
        assert seen.pop() == (2 * expected).tolist()
        expected *= 20
        assert x.tolist() == expected.tolist()
    assert not seen


def test_programs_of_a_step_run_without_the_gil_beside_other_threads(
    scale: _host.Program, x: np.ndarray, out: np.ndarray
) -> None:
    step = _host.Step([scale.bind(x, 2.0, out)] * 10)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    step()
    step()
    done.set()
    thread.join()
    assert out.tolist() == (2 * x).tolist()


def test_an_error_names_step_position_and_program(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    def exchange() -> None:
        raise LookupError("no neighbor")

    step = _host.Step([scale.bind(x, 2.0, out), exchange, scale.bind(out, 2.0, x)], "steps")
    with pytest.raises(LookupError, match="no neighbor") as caught:
        step()
    (note,) = caught.value.__notes__
    assert note.startswith("Step 'steps' has stopped at position 2 of 3, function '")
    assert note.endswith("exchange'. Position 1 has run.")
    assert out.tolist() == (2 * x).tolist()


def test_steps_are_made_of_calls_and_callables(scale: _host.Program) -> None:
    with pytest.raises(TypeError, match="Position 2 of step 's' must be a bound call or callable, not 'int'"):
        _host.Step([print, 3], "s")
    with pytest.raises(TypeError, match="Step 'step' takes no arguments"):
        _host.Step([])(1)
    _host.Step([])()


def test_a_step_that_contains_itself_is_refused(scale: _host.Program) -> None:
    step: Callable[[], None] = _host.Step([lambda: step()], "loop")
    with pytest.raises(RuntimeError, match="Step 'loop' is running, in another thread or because one of its functions"):
        step()


def test_arrays_are_swapped_everywhere(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    step = _host.Step([scale.bind(x, 2.0, out), scale.bind(out, 3.0, x)])
    step()
    assert (out.tolist(), x.tolist()) == ([2.0, 4.0, 6.0, 8.0, 10.0], [6.0, 12.0, 18.0, 24.0, 30.0])
    step.swap(x, out)
    step()
    assert (x.tolist(), out.tolist()) == ([4.0, 8.0, 12.0, 16.0, 20.0], [12.0, 24.0, 36.0, 48.0, 60.0])
    step.swap(x, out)
    step.set(factor=1.0)
    step()
    assert out.tolist() == x.tolist() == [4.0, 8.0, 12.0, 16.0, 20.0]


def test_a_refused_change_of_a_step_changes_nothing(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    long = np.zeros(2 * N)
    step = _host.Step([scale.bind(x, 2.0, out), scale.bind(long, 3.0, long)], "s")
    with pytest.raises(
        ValueError, match=r"Step 's' cannot be changed at position 1, program 'scale': .*size of axis 0"
    ):
        step.swap(out, long)
    with pytest.raises(ValueError, match="No program of step 's' has array 2 of swap"):
        step.swap(x, np.zeros(N))
    with pytest.raises(ValueError, match=r"Arrays 1 and 2 of swap\(\) are the same"):
        step.swap(x, x)
    with pytest.raises(ValueError, match=r"Arrays 1 and 2 of swap\(\) share elements"):
        step.swap(long[:N], long[1 : N + 1])
    with pytest.raises(TypeError, match=r"swap\(\) takes pairs of arrays, not 1 argument"):
        step.swap(x)
    with pytest.raises(TypeError, match="No program of step 's' has an argument 'f'"):
        step.set(f=1.0)
    with pytest.raises(TypeError, match=r"Step 's' cannot be changed at position 1, program 'scale': .*'factor'"):
        step.set(factor="1")
    step()
    assert out.tolist() == (2 * x).tolist()


class Exported:
    """An array that is read anew by each start that converts its arguments."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.reads = array, 0

    def __dlpack__(self) -> object:
        self.reads += 1
        return self.array.__dlpack__()


def test_a_swap_keeps_no_array_without_elements(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    empty = Exported(np.zeros(0))
    step = gtstub.Step([scale.bind(x, 2.0, out), gtstub.action(lambda *_: None, empty)])
    before = sys.getrefcount(empty.array)
    step.swap(x, out)
    assert (empty.reads, sys.getrefcount(empty.array)) == (1, before)


def test_capture_collects_what_is_called(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    capture = _host.begin_capture()
    with pytest.raises(RuntimeError, match="A capture cannot begin inside another one"):
        _host.begin_capture()
    scale(x, 2.0, out)
    scale(out, 3.0, x)
    calls = _host.end_capture(capture)
    scale(x, 5.0, out)
    assert [call.arguments["factor"] for call in calls] == [2.0, 3.0]
    step = _host.Step(calls)
    before = x.copy()
    step()
    assert x.tolist() == (6 * before).tolist()


def test_a_callable_may_call_the_program_itself(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    step = _host.Step([scale.bind(x, 2.0, out), lambda: scale(out, 10.0, out), scale.bind(out, 1.0, x)])
    expected = (20 * x).tolist()
    step()
    assert x.tolist() == expected


def test_the_actions_of_a_step_can_be_replaced(scale: _host.Program, x: np.ndarray, out: np.ndarray) -> None:
    step = _host.Step([scale.bind(x, 2.0, out)], "s")
    step.actions = [scale.bind(x, 3.0, out), print]
    assert len(step) == 2
    with pytest.raises(TypeError, match=r"Position 1 of step 's' must be a bound call or callable, not 'str'"):
        step.actions = ["x"]
    with pytest.raises(AttributeError, match=r"Attribute 'actions' cannot be deleted"):
        del step.actions

    def replace() -> None:
        step.actions = []

    step.actions = [scale.bind(x, 3.0, out), replace]
    with pytest.raises(RuntimeError, match=r"Step 's' is running, in another thread or because one of its functions"):
        step()
    assert out.tolist() == (3 * x).tolist()
    assert len(step) == 2


# --- Users' code while a step is changed or has failed ----------------------------------------------------------------


def test_the_text_of_an_exception_cannot_change_its_step() -> None:
    seen: list[str] = []

    class RefusalError(ValueError):
        def __str__(self) -> str:
            seen.append("text")
            step.actions = []
            return "no"

    def act() -> None:
        raise RefusalError

    step = _host.Step([lambda: None] * 50 + [act])
    with pytest.raises(RefusalError) as caught:
        step()
    assert (len(step), seen) == (51, [])
    assert "at position 51 of 51" in caught.value.__notes__[0]
    step.actions = []


def test_a_finalizer_runs_the_new_actions(parts: tuple[Path, Path], x: np.ndarray, out: np.ndarray) -> None:
    class Act:
        step: _host.Step

        def __call__(self) -> None:
            pass

        def __del__(self) -> None:
            self.step()

    act = Act()
    act.step = step = _host.Step([act, _host.load(*parts).bind(x, 2.0, np.zeros(N))])
    del act
    step.actions = [_host.load(*parts).bind(x, 3.0, out)]
    assert out.tolist() == (3 * x).tolist()


def test_the_name_of_an_action_cannot_change_the_step() -> None:
    class Named:
        def __call__(self) -> None:
            pass

        def __getattr__(self, name: str) -> str:
            step.actions = []
            return name

    step = _host.Step([print])
    step.actions = [Named()]
    assert len(step) == 1  # the error of the inner assignment has only cost the name


def test_steps_that_are_nested_too_deeply_are_refused() -> None:
    step = _host.Step([lambda: None])
    for _ in range(100_000):
        step = _host.Step([step])
    with pytest.raises(RecursionError):
        step()
