"""Steps inside steps, and functions with arrays, on programs that multiply a field by a factor."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from tests.support.scale_program import N

pytestmark = pytest.mark.sanitizer


# --- Changes ----------------------------------------------------------------------------------------------------------


def test_set_and_swap_reach_inner_steps(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    call = scale.bind(now, 2.0, new)
    innermost = gtstub.Step([call], "innermost")
    inner = gtstub.Step([innermost], "inner")
    step = gtstub.Step([scale.bind(now, 2.0, np.zeros(N)), inner, innermost, call], "outer")
    step.set(factor=3.0)
    assert call.arguments["factor"] == 3.0
    step()
    assert new.tolist() == [3.0] * N
    step.swap(now, new)  # the call is there three times, and is changed once
    assert call.arguments["x"] is new
    assert call.arguments["out"] is now
    innermost()
    assert now.tolist() == [9.0] * N


def test_a_step_inside_two_steps(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    inner = gtstub.Step([scale.bind(now, 2.0, new)], "inner")
    first, second = gtstub.Step([inner]), gtstub.Step([inner])
    first.swap(now, new)
    first.set(factor=4.0)
    new[:] = 1.0
    second()
    assert now.tolist() == [4.0] * N


def test_the_steps_inside_have_one_of_the_arrays(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    out, x = np.zeros(N), np.full(N, 7.0)
    inner = gtstub.Step([scale.bind(x, 1.0, new)], "inner")
    step = gtstub.Step([scale.bind(now, 1.0, out), inner], "outer")
    with pytest.raises(ValueError, match=r"No program of step 'inner' has array 1 of swap\(\)"):
        inner.swap(now, new)
    step.swap(now, new)
    new[:] = 3.0
    step()
    assert (out.tolist(), now.tolist()) == ([3.0] * N, [7.0] * N)


def test_a_refused_change_changes_nothing(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    long = np.zeros(2 * N)
    seen: list[Any] = []
    outer_call, inner_call = scale.bind(now, 2.0, new), scale.bind(long, 3.0, long)
    inner = gtstub.Step([inner_call], "inner")
    step = gtstub.Step([gtstub.action(seen.append, new), outer_call, inner], "outer")
    with pytest.raises(
        ValueError, match=r"Step 'outer' cannot be changed at position 2, program 'scale': .*size of axis 0"
    ):
        step.swap(new, long)
    short = np.zeros(N)
    inner.actions = [inner_call, scale.bind(short, 3.0, short)]
    readonly = now.view()
    readonly.flags.writeable = False
    other = gtstub.Step([outer_call, scale.bind(readonly, 2.0, np.zeros(N)), inner])
    with pytest.raises(
        ValueError, match=r"Step 'inner' cannot be changed at position 2, program 'scale': Argument 'out'.*read-only"
    ):
        other.swap(readonly, short)
    with pytest.raises(TypeError, match="No program of step 'outer' has an argument 'f'"):
        step.set(factor=5.0, f=1.0)
    assert outer_call.arguments == {"x": now, "factor": 2.0, "out": new}
    assert inner_call.arguments["factor"] == 3.0
    step()
    assert seen == [new]
    assert new.tolist() == [2.0] * N


def test_a_change_while_a_step_inside_runs(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    def change() -> None:
        with pytest.raises(RuntimeError, match="Step 'inner' is running, in another thread or because one of its fun"):
            step.set(factor=3.0)
        with pytest.raises(RuntimeError, match="Step 'inner' is running, in another thread or because one of its fun"):
            step.swap(now, new)

    inner = gtstub.Step([change], "inner")
    step = gtstub.Step([scale.bind(now, 2.0, new), inner], "outer")
    inner()
    step.set(factor=4.0)  # the refusals have left the outer step
    step.swap(now, new)


def test_steps_that_would_contain_themselves(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    inner = gtstub.Step([], "inner")
    middle = gtstub.Step([inner], "middle")
    step = gtstub.Step([scale.bind(now, 2.0, new), middle, middle], "outer")
    for each in (inner, middle, step):
        with pytest.raises(ValueError, match=r"Step 'inner' cannot have these actions: it would contain itself\."):
            inner.actions = [print, each]
    assert len(inner) == 0
    inner.actions = [scale.bind(now, 3.0, new)]
    step()
    assert new.tolist() == [3.0] * N
    gone = weakref.ref(step)
    del step, each
    gc.collect()
    assert gone() is None


def test_an_array_is_read_when_its_action_is_made(now: np.ndarray, new: np.ndarray) -> None:
    """A swap runs no code of it, which could swap others of the action."""
    unrelated, reads = np.zeros(N), []

    class Array:
        __dlpack_device__ = now.__dlpack_device__

        def __dlpack__(self, **options: Any) -> Any:
            reads.append(None)
            return now.__dlpack__(**options)

    array = Array()
    action = gtstub.action(print, array, new, unrelated)
    assert len(reads) == 1
    step = gtstub.Step([action, gtstub.Step([action])], "step")
    step.swap(new, unrelated)
    assert len(reads) == 1
    assert [id(each) for each in action.arrays] == [id(each) for each in (array, unrelated, new)]
    step.swap(now, new)  # the memory of `array`
    assert [id(each) for each in action.arrays] == [id(each) for each in (new, unrelated, now)]


def test_a_swap_while_arrays_of_another_are_read(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """The call is in both steps. Code that runs between reading and exchanging cannot change it."""
    third, refusals = np.full(N, 3.0), []

    class Array:
        __dlpack_device__ = now.__dlpack_device__

        def __dlpack__(self, **options: Any) -> Any:
            for change in (lambda: other.swap(now, new), lambda: other.set(factor=9.0), lambda: call.set(factor=9.0)):
                with pytest.raises(RuntimeError) as caught:
                    change()
                refusals.append(str(caught.value))
            return third.__dlpack__(**options)

    call, spare = scale.bind(now, 2.0, new), gtstub.action(print, third)
    step, other = gtstub.Step([call, spare], "step"), gtstub.Step([call], "other")
    step.swap(now, Array())
    refused = (
        "Step 'other' cannot be changed: program 'scale' is being changed, in another thread or through another step."
    )
    assert refusals == [
        refused,
        refused,
        "Program 'scale' has a bound call that is being changed, in another thread or in a step.",
    ]
    call()
    assert new.tolist() == [6.0] * N
    other.set(factor=1.0)
    call()
    assert new.tolist() == [3.0] * N


def test_what_is_no_array_that_a_swap_knows(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """Functions may have arrays of more axes, and texts."""
    others = [np.zeros((1,) * 7), "west"]
    action = gtstub.action(print, *others, now)
    step = gtstub.Step([action, scale.bind(now, 1.0, new)], "step")
    for each in others:
        with pytest.raises(TypeError, match=r"^Argument 2 of swap\(\) is no array of up to 6 axes\.$"):
            step.swap(now, each)
    step.swap(now, new)
    assert [id(each) for each in action.arrays] == [id(each) for each in (*others, new)]


def test_several_steps_are_swapped_by_one_call(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    out, third = np.zeros(N), np.full(N, 3.0)
    steps = [gtstub.Step([scale.bind(each, 2.0, out)], name) for each, name in ((now, "first"), (third, "second"))]
    with pytest.raises(ValueError, match=r"^No program of step 'first' has array 2 of swap\(\)\.$"):
        gtstub.swap(steps, now, new)
    assert steps[0][0].arguments["x"] is now
    gtstub.swap(steps, now, third)
    assert [step[0].arguments["x"] is array for step, array in zip(steps, (third, now), strict=True)] == [True, True]
    for step, expected in zip(steps, (6.0, 2.0), strict=True):
        step()
        assert out.tolist() == [expected] * N
    for wrong in ([], [steps[0], print]):
        with pytest.raises(TypeError, match=r"The first argument of swap\(\) must be steps"):
            gtstub.swap(wrong, now, new)  # type: ignore[arg-type]


def test_an_inner_step_is_kept(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    inner = gtstub.Step([scale.bind(now, 2.0, new)], "inner")
    step = gtstub.Step([inner])
    gone = weakref.ref(inner)
    del inner
    gc.collect()
    step.swap(now, new)
    new[:] = 1.0
    step()
    assert now.tolist() == [2.0] * N
    assert gone() is not None
    del step
    gc.collect()
    assert gone() is None


# --- Functions --------------------------------------------------------------------------------------------------------


def test_a_function_gets_its_arrays_as_they_are(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    seen: list[tuple[Any, ...]] = []

    def exchange(*arrays: Any) -> None:
        seen.append(arrays)

    action = gtstub.action(exchange, new, "west")
    step = gtstub.Step([scale.bind(now, 2.0, new), action, gtstub.Step([action, gtstub.action(exchange, now)])])
    step()
    step.swap(now, new)
    step()
    assert [tuple(each is new for each in arrays) for arrays in seen] == [
        (True, False),
        (True, False),
        (False,),
        (False, False),
        (False, False),
        (True,),
    ]
    assert all(arrays[1:] in ((), ("west",)) for arrays in seen)
    assert action.arrays[0] is now
    assert action.function is exchange


def test_an_array_that_only_a_function_has(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    spare = np.zeros(N)
    action = gtstub.action(print, spare)
    call = scale.bind(now, 2.0, new)
    step = gtstub.Step([call, action])
    step.swap(new, spare)
    assert action.arrays[0] is new
    assert call.arguments["out"] is spare


@pytest.mark.parametrize(
    "inside",
    [
        lambda array: [array],
        lambda array: (0.5, array),
        lambda array: {"vn": [array[:]]},
        lambda array: types.SimpleNamespace(vn=array),
        lambda array: ([0], {"now": types.SimpleNamespace(vn=array)}),
    ],
    ids=["list", "tuple", "mapping", "attribute", "nested"],
)
def test_an_array_inside_another_object_is_refused(
    scale: _host.Program, now: np.ndarray, new: np.ndarray, inside: Any
) -> None:
    """A swap would not reach it there, and the function would get the old one."""
    other, action = np.zeros(N), gtstub.action(print, inside(new), inside)
    step = gtstub.Step([scale.bind(now, 2.0, new), action, gtstub.action(print, other)], "s")
    text = (
        "Step 's' cannot be changed at position 2, function 'print': array 1 has inside it array 1 of the swap, where"
    )
    with pytest.raises(ValueError, match=text):
        step.swap(new, other)
    assert step[0].arguments["out"] is new
    step.swap(now, other)  # which it has not inside it
    assert step[0].arguments["x"] is other


def test_objects_without_arrays_and_rings_may_be_arguments(
    scale: _host.Program, now: np.ndarray, new: np.ndarray
) -> None:
    ring: list[Any] = [now.copy()]
    ring.append(ring)
    action = gtstub.action(print, ring, types, np.ndarray, object(), {}, None, new)
    gtstub.Step([scale.bind(now, 2.0, new), action]).swap(now, new)
    assert action.arrays[-1] is now


def test_what_is_no_action() -> None:
    with pytest.raises(TypeError, match="An action needs a function and the arrays that it is called with"):
        gtstub.action(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="An action takes no keyword arguments"):
        _host.Action(print, end="")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="An action takes no arguments"):
        gtstub.action(print)(1)  # type: ignore[call-arg]
    assert repr(gtstub.action(len, 1)) == "<gtstub action <built-in function len> (1 array)>"


def test_errors_name_steps_and_functions(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    def exchange(array: Any) -> None:
        raise LookupError("no neighbor")

    inner = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(exchange, new)], "inner")
    with pytest.raises(LookupError, match="no neighbor") as caught:
        gtstub.Step([inner], "outer")()
    first, second = caught.value.__notes__
    assert first.startswith(
        "Step 'inner' has stopped at position 2 of 2, function 'test_errors_name_steps_and_functions."
    )
    assert second == "Step 'outer' has stopped at position 1 of 1, step 'inner'."


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_an_array_is_known_by_its_memory(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """The same memory under several objects is one array, for programs and functions."""
    seen: list[Any] = []
    reader, writer = scale.bind(now[:], 2.0, np.zeros(N)), scale.bind(memoryview(now), 3.0, new)
    step = gtstub.Step([reader, writer, gtstub.action(seen.append, now.view())])
    step.swap(now[:], memoryview(new))
    new[:] = 5.0
    step()
    assert now.tolist() == [15.0] * N
    assert seen[0].obj is new
    with pytest.raises(ValueError, match=r"Arrays 1 and 2 of swap\(\) are the same"):
        step.swap(now, now[:])
    with pytest.raises(ValueError, match=r"No program of step 'step' has array 2 of swap\(\)"):
        step.swap(now, now.copy())


@pytest.mark.parametrize("part", [slice(2), slice(1, 3)])
def test_a_section_is_refused(scale: _host.Program, now: np.ndarray, new: np.ndarray, part: slice) -> None:
    """Another object is needed for the section of the other array, and nobody has made one."""
    out = np.zeros(N)
    section = scale.bind(now[part], 2.0, np.zeros(len(now[part])))
    step = gtstub.Step([scale.bind(now, 2.0, new), section], "s")
    text = (
        r"Step 's' cannot be changed at position 2, program 'scale': Argument 'x' of program 'scale' shares elements "
        r"with array 1 of the swap, but differs in address, type, size, stride or origin: .* Nothing has changed\.$"
    )
    with pytest.raises(ValueError, match=text):
        step.swap(now, new)
    assert step[0].arguments["x"] is now
    step = gtstub.Step([scale.bind(now, 2.0, out), gtstub.action(print, out[part])], "s")
    text = text.replace("Argument 'x' of program 'scale'", "array 1").replace("program 'scale'", "function 'print'")
    with pytest.raises(ValueError, match=text):
        step.swap(out, now)


@pytest.mark.parametrize("part", [np.s_[:, ::2], np.s_[::-1], np.s_[1:, 2:3], np.s_[3:, 3:]])
def test_a_section_of_a_function_is_refused(part: Any) -> None:
    now, new = np.zeros((4, 6))[:, :4], np.zeros((4, 6))[:, :4]
    step = gtstub.Step([gtstub.action(print, now, new), gtstub.action(print, now[part])])
    with pytest.raises(ValueError, match="at position 2, function 'print': array 1 shares elements with array 1 of"):
        step.swap(now, new)


def test_arrays_that_lie_between_each_other_are_swapped() -> None:
    """The elements of time levels alternate, and each level has gaps, which are not elements."""
    levels = np.zeros((4, 6, 3))
    now, new, old = (levels[:, :4, level] for level in range(3))
    action, gaps = gtstub.action(print, now[:], new, old), gtstub.action(print, levels[:, 4:], levels[..., 2])
    gtstub.Step([action, gaps]).swap(now, new)
    assert [each is other for each, other in zip(action.arrays, (new, now, old), strict=True)] == [True, True, True]
    with pytest.raises(ValueError, match="array 1 shares elements with array 1 of the swap"):
        gtstub.Step([action, gtstub.action(print, levels)]).swap(now, new)


# --- Tables -----------------------------------------------------------------------------------------------------------


def test_the_table_shows_inner_steps_and_functions(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    inner = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(print, new)], "inner")
    step = gtstub.Step([inner, len], "outer")
    assert (
        str(step)
        == """Step 'outer'
     action          writes  scalars
1    step 'inner'
1.1  scale           out     factor=2.0
1.2  print(1 array)
2    len()           ?
? is not known, and swap() does not reach it. gtstub.action(function, array) passes the arrays to a function."""
    )
    assert "not known" not in str(inner)
