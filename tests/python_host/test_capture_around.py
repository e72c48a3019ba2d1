"""What a captured method does to arrays that no program gets, and what other threads do meanwhile."""

from __future__ import annotations

import functools
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError, CaptureWarning
from gtstub.programs.state import State
from tests.support.captures import warned
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


class Slots:
    __slots__ = ("array", "unset")

    def __init__(self) -> None:
        self.array = np.zeros(5)


class Model:
    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.x, self.y, self.diagnostic = np.arange(1.0, 6.0), np.zeros(5), np.zeros(5)
        self.more: dict[str, Any] = {"list": [np.zeros(5)], "slots": Slots()}
        self.work: Callable[[], object] = lambda: None

    def run(self) -> None:
        self.scale(self.x, 2.0, self.y)
        self.work()


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def lacks(what: str) -> str:
    return f"Step 'run' lacks what the method does to {what}. A function that does this belongs to the step: " + (
        "gtstub.action(function, array)."
    )


def test_an_array_that_no_program_gets(model: Model) -> None:
    model.work = lambda: np.multiply(model.y, 2.0, out=model.diagnostic)
    at = "at 5 of 5 elements, first at (0,)"
    assert warned(model.run) == lacks(f"array 'self.diagnostic', which no program gets as a whole, {at}")
    assert model.diagnostic.tolist() == [4.0, 8.0, 12.0, 16.0, 20.0]  # as after one call


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("self.more['list'][0]", lambda model: model.more["list"][0]),
        ("self.more['slots'].array", lambda model: model.more["slots"].array),
    ],
)
def test_arrays_in_objects(name: str, array: Callable[[Model], np.ndarray], model: Model) -> None:
    model.work = lambda: np.copyto(array(model)[1:2], model.y[1:2])
    assert warned(model.run) == lacks(
        f"array '{name}', which no program gets as a whole, at 1 of 5 elements, first at (1,)"
    )


def test_elements_around_a_section(model: Model) -> None:
    """An exchange of a halo that no program of the step has."""
    whole = {"x": np.zeros(7)}
    section = whole["x"][1:-1]
    del whole

    def run() -> None:
        model.scale(model.x, 2.0, section)
        section.base[0], section.base[-1] = section[-1], section[0]

    what = "array 'that argument 'out' of program 'scale' (position 1) is a section of'"
    assert warned(run).startswith(
        f"Step 'run' lacks what the method does to {what}, which no program gets as a whole, at 2 of 7"
    )


def test_a_call_that_fails_and_has_a_substitute(model: Model) -> None:
    def run() -> None:
        try:
            model.scale(model.x.astype(np.float32), 2.0, model.diagnostic)
        except TypeError:
            np.add(model.x, 1.0, out=model.diagnostic)
        model.scale(model.x, 2.0, model.y)

    assert "array 'model.diagnostic', which no program gets" in warned(run)


def test_an_attribute_that_becomes_another_array(model: Model) -> None:
    def replace() -> None:
        model.diagnostic = 2.0 * model.y

    model.work = replace
    assert warned(model.run) == lacks("'self.diagnostic', which is another array after each call")


def test_what_stays_as_it_is_makes_no_warning(model: Model) -> None:
    unused = np.zeros(3)
    view = model.y[::2]

    def work(buffer: np.ndarray = np.zeros(2)) -> object:  # noqa: B008
        buffer[:] = 0.0
        return unused[0] + view[0]

    model.work = work
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gtstub.capture(model.run)


def test_time_levels_that_the_method_exchanges(model: Model) -> None:
    def run() -> None:
        model.run()
        model.x, model.y = model.y, model.x

    with pytest.raises(CaptureError) as caught:
        gtstub.capture(run, name="run")
    assert str(caught.value) == (
        "Step 'run' cannot be captured: argument 'x' of program 'scale' (position 1) was another array of the step in "
        "the second call of the method. If the method exchanges the two, as time levels, capture each order, or leave "
        "this to step.swap(). If its first call has a branch of its own, call it once before the capture."
    )


def test_programs_that_other_threads_call(model: Model) -> None:
    def in_a_thread() -> None:
        thread = threading.Thread(target=model.scale, args=(model.diagnostic, 2.0, model.diagnostic))
        thread.start()
        thread.join()

    model.work = in_a_thread
    text = "Step 'run' lacks 1 call of programs that other threads have made while it was captured."
    assert warned(model.run) == text
    with pytest.warns(CaptureWarning) as caught, gtstub.capture(name="run"):
        model.run()
    assert [(str(each.message), each.filename) for each in caught] == [(text, __file__)]


def test_programs_of_functions_are_no_calls_of_other_threads(model: Model) -> None:
    step = gtstub.Step([model.scale.bind(model.x, 2.0, model.y), lambda: model.scale(model.x, 2.0, model.y)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gtstub.capture(step)


OF_MODULE = np.zeros(5)
MODULE = types.ModuleType("module")
MODULE.inner = types.ModuleType("module.inner")
MODULE.inner.array = np.zeros(5)


def test_arrays_of_modules() -> None:
    names = list(State([lambda: (MODULE.inner.array, np.zeros)]).arrays)
    assert names == ["MODULE.inner.array"]
    assert list(State([lambda: OF_MODULE]).arrays) == ["OF_MODULE"]


def test_names_of_arrays() -> None:
    a, b, c = np.zeros(1), np.zeros(2), np.zeros(3)
    unset: Any

    def function(x: np.ndarray, y: np.ndarray = b) -> Any:
        return a, x, y, unset

    assert list(State([functools.partial(function, c)]).arrays) == ["a", "y", "args[0]"]
    assert not State([print]).arrays
    by_objects = {object(): np.zeros(1), object(): np.zeros(2), "x": np.zeros(3), 4: np.zeros(4)}
    names = list(State([lambda: by_objects]).arrays)
    assert names == ["by_objects[key 1]", "by_objects[key 2]", "by_objects['x']", "by_objects[4]"]
    inner = np.zeros(1)
    objects = np.array([None, inner, 1.0], object)
    loop: list[Any] = [np.float64(1.0), objects, np.array(["text"]), np.zeros(1, "M8[s]"), np.zeros(2, "V0")]
    loop.append(loop)
    names = list(State([lambda: loop]).arrays)
    assert names == ["loop[1]", "loop[2]", "loop[3]", "loop[1][1]"]
    unset = None
