"""
What a method has in attributes, variables, lists and mappings is after a capture as after one call, also after one that
was refused; and so are arrays without numbers.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import itertools
import logging.handlers
import socket
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError, CaptureWarning
from gtstub.programs.state import State
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


class Slots:
    __slots__ = ("count", "unset")

    def __init__(self) -> None:
        self.count = 0


class Model:
    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.now, self.new = np.arange(1.0, 6.0), np.zeros(5)
        self.t = 0
        self.max = 0.0

    def run(self) -> None:
        self.scale(self.now, 2.0, self.new)
        self.max = float(self.new.max())
        self.t += 1

    def run_and_swap(self) -> None:
        self.run()
        self.now, self.new = self.new, self.now


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def after_one_call(model: Model) -> None:
    assert model.now.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert model.new.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert (model.t, model.max) == (1, 10.0)


def test_a_refused_capture_exchanges_time_levels_once(model: Model) -> None:
    with pytest.raises(CaptureError, match=r"was another array of the step in the second call of the method\."):
        gtstub.capture(model.run_and_swap)
    after_one_call(model)
    model.run_and_swap()
    assert model.now.tolist() == [4.0, 8.0, 12.0, 16.0, 20.0]


def test_numbers_after_a_capture(model: Model) -> None:
    """They are not ahead, and not those of slightly other values."""
    gtstub.capture(model.run)
    model.now, model.new = model.new, model.now
    after_one_call(model)


def test_a_method_that_fails_in_its_second_call(model: Model) -> None:
    def run() -> None:
        model.run_and_swap()
        if model.t == 2:
            raise LookupError

    with pytest.raises(LookupError):
        gtstub.capture(run)
    after_one_call(model)


def test_everything_that_is_reached(model: Model) -> None:
    count = 0
    model.log, model.queue, model.names = [], collections.deque([0], 3), {"of the start"}
    model.inner = types.SimpleNamespace(slots=Slots(), mapping={"count": 0}, ordered=collections.OrderedDict(count=0))

    def run() -> None:
        nonlocal count
        model.run()
        count += 1
        model.log.append(model.t)
        model.queue.append(model.t)
        model.names.add(str(model.t))
        model.inner.slots.count += 1
        model.inner.mapping["count"] += 1
        model.inner.mapping.setdefault("of the second call" if count > 1 else "of the first call", 0)
        model.inner.ordered["count"] += 1

    gtstub.capture(run)
    assert (count, model.log, list(model.queue), model.names) == (1, [1], [0, 1], {"of the start", "1"})
    assert model.inner.slots.count == model.inner.mapping["count"] == model.inner.ordered["count"] == 1
    assert list(model.inner.mapping) == ["count", "of the first call"]


def test_what_was_deleted_comes_back() -> None:
    class Owner:
        pass

    owner: Any = Owner()
    owner.slots, owner.mapping, owner.list = Slots(), {"a": 1}, [1, 2]
    state = State([lambda: owner])
    del owner.slots.count, owner.mapping["a"], owner.list[0]
    slots = owner.slots
    del owner.slots
    state.restore()
    assert (owner.slots, owner.slots.count, owner.mapping, owner.list) == (slots, 0, {"a": 1}, [1, 2])


def test_an_object_of_another_class_with_other_attributes() -> None:
    class Waiting:
        pass

    class Running(Waiting):
        pass

    owner: Any = Waiting()
    owner.count, attributes = 0, vars(owner)
    state = State([lambda: owner])
    owner.__class__, owner.__dict__ = Running, {"count": 1}
    state.restore()
    assert type(owner) is Waiting
    assert (vars(owner) is attributes, owner.count) == (True, 0)


def test_weak_references_do_not_end() -> None:
    class Owner:
        pass

    owners = [Owner()]
    known = weakref.WeakSet(owners)
    state = State([lambda: known])
    del owners[0]
    state.restore()
    assert len(list(known)) == 1
    del state
    assert not list(known)


def test_objects_of_libraries_are_left_alone() -> None:
    """Their attributes belong together with what is not in attributes."""
    semaphore = threading.Semaphore(3)
    program = types.SimpleNamespace(semaphore=semaphore)
    state = State([lambda: program])
    semaphore.acquire()
    state.restore()
    assert semaphore._value == 2


def test_attributes_of_a_base_of_the_standard_library_are_left_alone(tmp_path: Path) -> None:
    """The others are put back."""

    class Log(logging.handlers.RotatingFileHandler):
        def __init__(self) -> None:
            super().__init__(tmp_path / "log")
            self.count = 0

    class Socket(socket.socket):
        __slots__ = ("count",)

        def __init__(self) -> None:
            super().__init__(socket.AF_UNIX)
            self.count = 0

    class Kind(Protocol):
        count = 0

    with contextlib.closing(Log()) as log, Socket() as own:
        state = State([lambda: (log, own, Kind)])
        log.doRollover()
        log.count = own.count = Kind.count = log.is_started = 1  # type: ignore[attr-defined]
        with own.makefile():
            state.restore()
            assert own._io_refs == 1
        log.stream.write("It is open.")
        assert not hasattr(log, "is_started")
        assert (log.count, own.count, Kind.count) == (0, 0, 0)


@pytest.mark.parametrize("levels", [2, 3])
def test_a_step_that_the_method_swaps_and_sets(levels: int, model: Model) -> None:
    arrays = [np.full(5, float(level)) for level in range(levels)]
    seen: list[np.ndarray] = []
    step = gtstub.Step(
        [
            gtstub.Step([model.scale.bind(arrays[0], 2.0, arrays[1])]),
            gtstub.action(seen.append, arrays[-1]),
            model.scale.bind(arrays[-1], 3.0, model.new),
        ]
    )
    inner = step[0]

    def run() -> None:
        step()
        for one, other in itertools.pairwise(arrays):
            step.swap(one, other)
        model.t += 1
        inner.set(factor=2.0 + model.t)

    def has(call: Any) -> list[int]:
        return [number for value in call.arguments.values() for number, each in enumerate(arrays) if value is each]

    with pytest.raises(CaptureError, match="was another array of the step"):
        gtstub.capture(run)
    after = ([1, 0], [0]) if levels == 2 else ([2, 0], [1])
    assert (has(inner[0]), has(step[2])) == after
    assert any(step[1].arrays[0] is arrays[number] for number in after[1])
    assert (inner[0].arguments["factor"], model.t) == (3.0, 1)


def test_actions_that_the_method_replaces(model: Model) -> None:
    step = gtstub.Step([model.scale.bind(model.now, 2.0, model.new)])

    def run() -> None:
        step()
        step.actions = [*step, lambda: None]

    with pytest.raises(CaptureError, match="has called 1 program, and the second one 2"):
        gtstub.capture(run)
    assert len(step) == 2


# --- Arrays without numbers -------------------------------------------------------------------------------------------


MADE: dict[str, tuple[Any, Callable[[float], Any]]] = {
    "structure": ([("time", "f8"), ("name", "U3")], lambda value: (value, "abc")),
    "date": ("M8[s]", lambda value: np.datetime64(int(1e6 * value), "s")),
    "time": ("m8[s]", lambda value: np.timedelta64(int(1e6 * value), "s")),
    "text": ("U8", str),
    "long text": (np.dtypes.StringDType(), str),
    "object": (object, lambda value: value),
    "object in a structure": ([("value", object)], lambda value: (value,)),
}


@pytest.mark.parametrize("name", MADE)
def test_arrays_of_other_types(name: str, model: Model) -> None:
    """They have what the first call has written, although later ones write other things."""
    dtype, made = MADE[name]
    model.more = np.zeros(1, dtype)

    def run() -> None:
        model.run()
        model.more[0] = made(model.max)

    run()
    expected = model.more.tolist()
    model.more[:] = np.zeros(1, dtype)
    with pytest.warns(CaptureWarning, match=r"lacks what the method does to array 'model.more', which no program"):
        gtstub.capture(run)
    assert model.more.tolist() == expected


def test_an_object_that_stays(model: Model) -> None:
    model.more = np.array([None, "text", model.now, 1e300], object)

    def run() -> None:
        model.run()
        model.more[:] = None, "".join("text"), model.now, float("1e300")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gtstub.capture(run)


# --- Read-only arguments ----------------------------------------------------------------------------------------------


def view_of_an_array(memory: bytearray) -> tuple[np.ndarray, np.ndarray]:
    array = np.frombuffer(memory)
    view = array.view()
    view.flags.writeable = False
    return array, view


def view_of_its_own(memory: bytearray) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(memory), np.frombuffer(memoryview(memory).toreadonly())


def section(memory: bytearray) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(memory), np.frombuffer(memoryview(memory).toreadonly())[1:-1]


@pytest.mark.parametrize("make", [view_of_an_array, view_of_its_own, section])
def test_an_exchange_behind_a_read_only_view(make: Callable[[bytearray], Any], model: Model) -> None:
    model.buffer, model.view = make(bytearray(np.array([4.0, 1.0, 2.0, 3.0, 4.0, 1.0]).tobytes()))
    model.out, model.other = np.zeros((2, *model.view.shape))

    def run() -> None:
        model.scale(model.view, 2.0, model.out)
        if make is section:
            model.buffer[1] = model.buffer[-2]
        model.buffer[0], model.buffer[-1] = model.buffer[-2], model.buffer[1]
        model.scale(model.view, 2.0, model.other)

    if make is section:
        model.buffer[1] = model.buffer[-2]
    run()
    before = model.buffer.copy()
    with pytest.raises(CaptureError, match=r"does not do what the method does|is read-only, but the method changes"):
        gtstub.capture(run)
    assert model.buffer.tobytes() == before.tobytes()


# --- Several ranks ----------------------------------------------------------------------------------------------------


class Counted(Model):
    """Counts calls of the method, and starts of the exchange by the method and its step."""

    counts = (ctypes.c_int * 2)()  # is not put back

    def exchange(self) -> None:
        self.counts[1] += 1

    def run_inner(self, inner: Callable[[], object], after: Callable[[], object]) -> None:
        self.counts[0] += 1
        inner()
        after()


@pytest.fixture
def counted(tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr("gtstub.ranks._chosen", None)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    Counted.counts = (ctypes.c_int * 2)()
    return Counted(tmp_path, toolchain)


def captured(model: Counted, after: Callable[[], object] = lambda: None) -> str:
    """What capture says, and afterwards all ranks have done the same."""
    inner = gtstub.Step([model.scale.bind(model.now, 2.0, model.new), model.exchange])
    text = ""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        try:
            gtstub.capture(lambda: model.run_inner(inner, after), name="run")
        except (CaptureError, LookupError, TypeError) as error:
            text = str(error)
    assert list(Counted.counts) == [4, 7]
    assert model.new.tolist()[:4] == [2.0, 4.0, 6.0, 8.0]
    return text


def test_a_rank_without_findings(counted: Counted) -> None:
    assert captured(counted) == ""


def test_a_rank_with_an_array_that_cannot_be_copied(counted: Counted) -> None:
    counted.new = memoryview(np.zeros(5))
    assert "is of type 'memoryview', which cannot be copied" in captured(counted)


def test_a_rank_that_finds_a_difference(counted: Counted) -> None:
    assert "argument 'out' of program 'scale' (position 1) differs at 1 of 5 elements" in captured(
        counted, lambda: counted.new.__setitem__(4, counted.new[4] + 1.0)
    )


def test_a_rank_that_finds_it_with_other_values(counted: Counted) -> None:
    assert "if its arrays begin with slightly other values: argument 'out'" in captured(
        counted, lambda: counted.new.__setitem__(4, 10.0)
    )


def test_a_rank_that_is_refused_at_the_second_call(counted: Counted) -> None:
    def swap() -> None:
        counted.scale(counted.now, float(Counted.counts[0]), np.zeros(5))

    assert "was 1.0 in the first call, and 2.0 in the second one" in captured(counted, swap)


@pytest.mark.parametrize("call", [2, 3, 4])
def test_a_rank_whose_method_fails(call: int, counted: Counted) -> None:
    def fail() -> None:
        if Counted.counts[0] == call:
            raise LookupError("at the end")

    assert captured(counted, fail) == ("at the end" if call == 2 else "")


def test_a_rank_with_an_array_that_is_resized(counted: Counted) -> None:
    counted.more = np.zeros(1)
    text = captured(counted, lambda: counted.more.resize(counted.counts[0], refcheck=False))
    assert "array 'model.more' cannot be put back" in text


def test_a_rank_without_numbers_that_can_change(counted: Counted) -> None:
    counted.now.flags.writeable = False
    counted.new = np.arange(5.0)
    captured(counted)


def test_a_rank_with_an_object_that_cannot_be_looked_at(counted: Counted) -> None:
    counted.more = type("Meta", (type,), {"__hash__": None})("Kind", (), {})()
    assert captured(counted) == "unhashable type: 'Meta'"


def test_a_rank_without_programs(counted: Counted) -> None:
    def run() -> None:
        counted.counts[0] += 1
        counted.t += 1

    with pytest.raises(CaptureError, match="has captured nothing"):
        gtstub.capture(run)
    assert (Counted.counts[0], counted.t) == (4, 1)
    counted.more = type("Meta", (type,), {"__hash__": None})("Kind", (), {})()
    with pytest.raises(CaptureError, match="has captured nothing"):
        gtstub.capture(run)
    assert Counted.counts[0] == 8
