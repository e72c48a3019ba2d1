"""Where a captured method changes an array besides its programs: the message names the place and the array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


class Model:
    """Four arrays, and a method of three programs that does work of its own at one or more places."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.x, self.y, self.z = np.arange(1.0, 6.0), np.zeros(5), np.arange(5.0)
        self.result = np.zeros(5)
        self.calls = memoryview(bytearray(1))  # which a capture does not put back
        self.work: dict[int, Callable[[], object]] = {}

    def run(self) -> None:
        self.calls[0] += 1
        self._work(0)
        self.scale(self.x, 2.0, self.y)
        self._work(1)
        self.scale(self.y, 3.0, self.x)
        self._work(2)
        self.scale(self.z, 4.0, self.result)
        self._work(3)

    def _work(self, place: int) -> None:
        self.work.get(place, lambda: None)()


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def refusal(method: Callable[[], object]) -> str:
    """What the message says after its beginning."""
    with pytest.raises(CaptureError) as caught:
        gtstub.capture(method, name="run")
    beginning, _, rest = str(caught.value).partition(": ")
    assert beginning == "Step 'run' does not do what the method does"
    end = " A function that does this belongs there: gtstub.action(function, array)."
    return rest.removesuffix(end)


def change(place: str, argument: str, elements: str, values: str) -> str:
    return f"{place}, something other than a program changes {argument} at {elements}: {values}."


def add(array: np.ndarray, index: int) -> Callable[[], None]:
    def work() -> None:
        array[index] += 1.0

    return work


def test_before_the_first_program(model: Model) -> None:
    model.work[0] = add(model.x, 1)
    assert refusal(model.run) == change(
        "before position 1 ('scale')",
        "argument 'x' of program 'scale' (position 1)",
        "1 of 5 elements, first at (1,)",
        "19.0 in the method, 18.0 in the step",
    )


def test_between_programs(model: Model) -> None:
    model.work[1] = add(model.y, 4)
    before = model.x.copy()
    assert refusal(model.run) == change(
        "between position 1 ('scale') and position 2 ('scale')",
        "argument 'x' of program 'scale' (position 2)",
        "1 of 5 elements, first at (4,)",
        f"{2 * (6 * before[4] + 3) + 1} in the method, {2 * (6 * before[4] + 3)} in the step",
    )
    assert model.calls[0] == 3
    assert model.x.tolist() == [*(6 * before[:4]), 6 * before[4] + 3]  # as after one call of the method


def test_after_the_last_program(model: Model) -> None:
    model.work[3] = add(model.result, 0)
    assert refusal(model.run) == change(
        "after position 3 ('scale')",
        "argument 'out' of program 'scale' (position 3)",
        "1 of 5 elements, first at (0,)",
        "1.0 in the method, 0.0 in the step",
    )


def test_an_array_that_a_later_program_reads(model: Model) -> None:
    model.work[1] = add(model.z, 2)
    assert refusal(model.run).startswith(
        "between position 1 ('scale') and position 2 ('scale'), something other than a program changes argument 'x' of "
        "program 'scale' (position 3) at 1 of 5 elements, first at (2,): 4.0 in the method, 3.0 in"
    )


def test_an_array_that_no_later_program_takes(model: Model) -> None:
    model.work[2] = add(model.y, 0)
    assert refusal(model.run).startswith(
        "between position 2 ('scale') and position 3 ('scale'), something other than a program changes argument 'x' of "
        "program 'scale' (position 2) at"
    )


def test_through_another_view(model: Model) -> None:
    view = model.x.reshape(5, 1)[::-2]
    model.work[2] = lambda: np.negative(view, out=view)
    assert refusal(model.run).startswith(
        "between position 2 ('scale') and position 3 ('scale'), something other than a program changes argument 'out' "
        "of program 'scale' (position 2) at 3 of 5 elements, first at (0,): "
    )


def test_the_first_of_several(model: Model) -> None:
    model.work = {3: add(model.x, 0), 2: add(model.z, 3), 1: add(model.y, 4)}
    assert refusal(model.run).startswith(
        "between position 1 ('scale') and position 2 ('scale'), something other than a program"
    )


def test_in_methods_that_a_method_calls(model: Model) -> None:
    def outer() -> None:
        model.run()
        model.z[1] *= 2.0
        model.run()

    assert refusal(outer).startswith(
        "between position 3 ('scale') and position 4 ('scale'), something other than a program changes argument 'x' of "
        "program 'scale' (position 6) at 1 of 5 elements, first at (1,): "
    )


def test_around_steps_that_a_method_runs(model: Model) -> None:
    inner = gtstub.capture(model.run)

    def outer() -> None:
        inner()
        model.z[1] += 2.0
        inner()

    assert refusal(outer).startswith(
        "between position 3 ('scale') and position 4 ('scale'), something other than a program"
    )


def test_a_call_that_has_failed(model: Model) -> None:
    """What the arrays are when the program runs counts, not what they were before a call that was refused."""

    def run() -> None:
        model.scale(model.x, 2.0, model.y)
        with pytest.raises(TypeError):
            model.scale(model.x.astype("float32"), 2.0, model.y)
        model.y[0] += 1.0
        model.scale(model.y, 3.0, model.x)

    assert refusal(run).startswith(
        "between position 1 ('scale') and position 2 ('scale'), something other than a program"
    )


@pytest.mark.parametrize("fails", [True, False])
def test_a_method_that_does_something_else_in_the_third_call(fails: bool, model: Model) -> None:
    """Then the message is that of the verification."""

    def work() -> None:
        if model.calls[0] == 2:
            model.result[2] += 1.0
        elif model.calls[0] == 3 and fails:
            raise LookupError

    model.work[3] = work
    before = model.x.copy()
    assert refusal(model.run) == (
        "argument 'out' of program 'scale' (position 3) differs at 1 of 5 elements, first at (2,): 9.0 after the "
        "method, 8.0 after the step. The method does more than call these programs."
    )
    assert model.x.tolist() == (6 * before).tolist()
    with gtstub.capture() as step:  # the thread does not capture any more
        model.run()
    assert len(step) == 3


def test_a_method_that_does_nothing_else_is_called_three_times(model: Model) -> None:
    """Once for the user, and once from the values that the arrays have then and from other ones."""
    gtstub.capture(model.run)
    assert model.calls[0] == 3


def test_what_looks_can_fail(model: Model) -> None:
    looked: list[int] = []

    def look(number: int) -> None:
        looked.append(number)
        if number == 2:
            raise LookupError

    capture = _host.begin_capture(look)
    with pytest.raises(LookupError):
        model.run()
    assert len(_host.end_capture(capture)) == 2
    assert looked == [0, 1, 2]
    assert not model.result.any()
    model.run()
    assert len(looked) == 3
