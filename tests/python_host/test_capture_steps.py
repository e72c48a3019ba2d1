"""Captures of methods that run steps: what these steps do besides programs is a part of what is captured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


def negate(array: np.ndarray) -> None:
    np.negative(array, out=array)


class Model:
    """A step of a program, a function, and another step with a function that takes no arrays."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.x, self.y, self.z = np.arange(1.0, 6.0), np.zeros(5), np.zeros(5)
        inner = gtstub.Step([self.add_one], "inner")
        self.step = gtstub.Step(
            [
                self.scale.bind(self.x, 2.0, self.y),
                gtstub.action(negate, self.y),
                inner,
                self.scale.bind(self.y, 3.0, self.z),
            ]
        )

    def add_one(self) -> None:
        self.y += 1.0

    def run(self) -> None:
        self.scale(self.x, 1.0, self.x)
        self.step()


EXPECTED = [-3.0, -9.0, -15.0, -21.0, -27.0]


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def check(step: gtstub.Step, model: Model) -> None:
    assert model.z.tolist() == EXPECTED
    assert [line.split()[1] for line in str(step).splitlines()[2:6]] == [
        "scale",
        "scale",
        "negate(1",
        "Model.add_one()",
    ]
    model.y[:] = model.z[:] = 0.0
    step()
    assert model.z.tolist() == EXPECTED


def test_a_block(model: Model) -> None:
    with gtstub.capture() as step:
        model.run()
    check(step, model)


def test_a_method(model: Model) -> None:
    check(gtstub.capture(model.run), model)


def test_programs_of_a_function_are_its_own(model: Model) -> None:
    def twice() -> None:
        model.scale(model.y, 2.0, model.y)

    model.step = gtstub.Step([model.scale.bind(model.x, 2.0, model.y), twice])
    step = gtstub.capture(model.run)
    assert len(step) == 3
    step()
    assert model.y.tolist() == [4.0, 8.0, 12.0, 16.0, 20.0]


def test_a_swap_of_the_inner_step_is_not_one_of_the_captured_step(model: Model) -> None:
    with gtstub.capture() as step:
        model.step()
        model.step.swap(model.y, model.z)
    assert step[1].arrays[0] is model.y
    step.swap(model.y, model.x)
    assert (step[1].arrays[0] is model.x, model.step[1].arrays[0] is model.z) == (True, True)


def test_a_function_that_fails_is_not_captured(model: Model) -> None:
    def fail() -> None:
        raise LookupError

    with gtstub.capture() as step, pytest.raises(LookupError):
        gtstub.Step([model.scale.bind(model.x, 2.0, model.y), fail])()
    assert len(step) == 1
    with gtstub.capture() as step:  # the thread still captures
        model.run()
    assert len(step) == 5


def test_what_the_method_does_around_a_function_is_found(model: Model) -> None:
    def run() -> None:
        model.run()
        model.x[0] += 1.0
        model.run()

    with pytest.raises(CaptureError) as caught:
        gtstub.capture(run, name="run")
    assert "between position 5 ('scale') and position 6 ('scale'), something other" in str(caught.value)

    calls = []
    model.step = gtstub.Step([gtstub.action(lambda array: calls.append(len(array)), model.x), *model.step])

    def before_a_function() -> None:
        model.scale(model.x, 1.0, model.x)
        model.x[0] += 1.0
        model.step()

    with pytest.raises(CaptureError, match=r"between position 1 \('scale'\) and position 2 \('.*'\), something other"):
        gtstub.capture(before_a_function)


def test_functions_that_differ_from_call_to_call(model: Model) -> None:
    def run() -> None:
        gtstub.Step([model.scale.bind(model.x, 2.0, model.y), lambda: None])()

    with pytest.raises(CaptureError, match=r"at position 2, the first call of the method has called function 'run at "):
        gtstub.capture(run)

    def with_array() -> None:
        gtstub.Step([model.scale.bind(model.x, 2.0, model.y), gtstub.action(negate, np.zeros(5))])()

    with pytest.raises(CaptureError, match=r"array 1 of function 'negate' \(position 2\) was another object in the"):
        gtstub.capture(with_array)

    def as_it_was() -> None:
        gtstub.Step([model.scale.bind(model.x, 2.0, model.y), gtstub.action(negate, model.y)])()

    assert len(gtstub.capture(as_it_was)) == 2
