"""Functions that an SDFG calls from several threads, and programs that are called within such functions."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.allocations import growth, held
from tests.support.calling_programs import PARALLEL, SERIAL, Built, another_thread, call

pytestmark = [pytest.mark.sanitizer, pytest.mark.usefixtures("no_deadlock")]


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Built:
    return SERIAL.build(tmp_path_factory.mktemp("serial"), toolchain)


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Built:
    return PARALLEL.build(tmp_path_factory.mktemp("parallel"), toolchain)


@pytest.fixture
def released_gil() -> Iterator[None]:
    """While another thread of Python exists, calls release the GIL."""
    with another_thread():
        yield


def in_thread(function: Callable[[], object]) -> Any:
    """What a function returns or raises in another thread, for which this one waits."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_without_other_threads_the_gil_is_kept(serial: Built) -> None:
    """Then no other thread runs between two callbacks; a thread of a callback begins while that one waits."""
    for thread in threading.enumerate():  # an earlier test may have left one that is ending
        if thread is not threading.current_thread():
            thread.join(30)
    assert threading.enumerate() == [threading.current_thread()]
    assert call(serial.load(), lambda *_: in_thread(lambda: 3.0)).tolist() == [3.0] * 10


@pytest.mark.usefixtures("released_gil")
def test_a_callback_waits_for_a_thread(serial: Built) -> None:
    assert call(serial.load(), lambda *_: in_thread(lambda: 3.0)).tolist() == [3.0] * 10


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_of_openmp_call(parallel: Built, threads: int) -> None:
    who: set[int] = set()
    program = parallel.load()

    def f(i: int, x: Any) -> float:
        who.add(threading.get_ident())
        return i + float(x[0])

    for _ in range(3):
        assert call(program, f, 200, threads).tolist() == [*map(float, range(200))]
    assert len(who) == threads


def test_threads_of_openmp_call_in_a_thread(parallel: Built) -> None:
    program = parallel.load()
    found = in_thread(lambda: call(program, lambda i, _: in_thread(lambda: 2.0 * i), 40, 3))
    assert found.tolist() == [2.0 * i for i in range(40)]


def test_callbacks_of_several_threads_run_at_the_same_time(parallel: Built) -> None:
    barrier = threading.Barrier(3)
    assert call(parallel.load(), lambda *_: barrier.wait() * 0.0, 3, 3).tolist() == [0.0] * 3


@pytest.mark.parametrize("name", ["serial", "parallel"])
def test_two_threads_call_two_handles_of_one_stub(request: pytest.FixtureRequest, name: str) -> None:
    built: Built = request.getfixturevalue(name)
    programs = [built.load(), built.load()]
    threads = 2 if name == "parallel" else 1
    found: dict[int, list[Any]] = {0: [], 1: []}

    def run(number: int) -> None:
        for _ in range(100):
            found[number].append(call(programs[number], lambda i, _: 100.0 * number + i, 5, threads).tolist())

    others = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert found == {number: [[100.0 * number + i for i in range(5)]] * 100 for number in range(2)}


# --- Programs in callbacks --------------------------------------------------------------------------------------------


def refusal(name: str) -> str:
    return f"Program '{name}' was called by one of its own callbacks."


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("is_same", [True, False])
def test_a_callback_that_calls_its_program_is_refused(parallel: Built, threads: int, *, is_same: bool) -> None:
    program = parallel.load()
    inner = program if is_same else parallel.load()
    errors: list[str] = []

    def f(_: int, __: object) -> float:
        try:
            call(inner, lambda *_: 1.0)
        except RuntimeError as error:
            errors.append(str(error))
        return 4.0

    assert call(program, f, 6, threads).tolist() == [4.0] * 6
    assert errors == [refusal("parallel")] * 6
    assert call(inner, lambda *_: 1.0).tolist() == [1.0] * 10


def test_the_refusal_ends_the_call(serial: Built) -> None:
    program = serial.load()
    with pytest.raises(RuntimeError) as caught:
        call(program, lambda *_: call(program, lambda *_: 1.0)[0])
    assert str(caught.value) == refusal("serial")


def test_a_callback_cannot_swap_what_its_program_uses(serial: Built) -> None:
    now, new, errors = np.zeros(4), np.zeros(4), []

    def f(_: int, __: object) -> float:
        with pytest.raises(RuntimeError) as caught:
            step.swap(now, new)
        errors.append(str(caught.value))
        return 1.0

    bound = serial.load().bind(now, np.zeros(2), 1, f)
    step = gtstub.Step([bound, gtstub.action(print, new)], "step")
    step.swap(now, new)
    bound()
    reason = "Step 'step' cannot be changed at position 1, program 'serial': {} Nothing has changed."
    assert errors == [reason.format(refusal("serial"))] * 2
    assert bound.arguments["x"] is new


@pytest.mark.parametrize("threads", [1, 3])
def test_a_callback_calls_another_program(serial: Built, parallel: Built, threads: int) -> None:
    outer, inner = parallel.load(), serial.load()
    inners = [inner, *(serial.load() for _ in range(2))]

    def f(i: int, _: object) -> float:
        return float(call(inners[i % 3], lambda j, _: float(10 * i + j)).sum())

    assert call(outer, f, 9, threads).tolist() == [100.0 * i + 45 for i in range(9)]


def test_a_callback_of_a_callback_may_not_call_the_first_program(serial: Built, parallel: Built) -> None:
    outer, inner = serial.load(), parallel.load()

    def innermost(_: int, __: object) -> float:
        return float(call(outer, lambda *_: 1.0)[0])

    with pytest.raises(RuntimeError) as caught:
        call(outer, lambda *_: call(inner, innermost, 4, 2)[0])
    assert str(caught.value) == refusal("serial")
    assert call(outer, lambda *_: call(inner, lambda *_: 2.0, 4, 2)[0]).tolist() == [2.0] * 10


def test_an_exception_passes_through_two_programs(serial: Built, parallel: Built) -> None:
    outer, inner = serial.load(), parallel.load()
    error = KeyError("deep")

    def fail(_: int, __: object) -> float:
        raise error

    calls: list[int] = []
    with pytest.raises(KeyError) as caught:
        call(outer, lambda i, _: calls.append(i) or call(inner, fail, 4, 2)[0])
    assert caught.value is error
    assert calls == [0]


def test_a_profile_counts_the_programs_of_callbacks(serial: Built, parallel: Built) -> None:
    outer, inner = parallel.load(), serial.load()
    with gtstub.profile() as report:
        call(outer, lambda *_: call(inner, lambda *_: 1.0)[0], 6, 2)
    assert {each.name: each.calls for each in report.programs} == {"parallel": 1, "serial": 6}


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_garbage_is_collected_in_callbacks(parallel: Built) -> None:
    """A program, an array and a function that only cycles keep alive, while the same program runs."""

    class Node:
        me: object

    program = parallel.load()
    dead: list[weakref.ref[Any]] = []

    def f(_: int, x: Any) -> float:
        node = Node()
        node.me = node, parallel.load(), np.zeros(3)
        dead.append(weakref.ref(node))
        del node
        gc.collect()
        return float(x[0])

    assert call(program, f, 20, 2).tolist() == [0.0] * 20
    gc.collect()
    assert [each() for each in dead] == [None] * 20


def test_the_program_may_be_dropped_in_a_callback(serial: Built) -> None:
    programs = [serial.load()]
    dead = weakref.ref(programs[0])

    def f(_: int, __: object) -> float:
        programs.clear()
        gc.collect()
        return 1.0

    assert call(programs[0], f).tolist() == [1.0] * 10
    gc.collect()
    assert dead() is None


def test_a_million_callbacks_allocate_nothing_that_stays(serial: Built, parallel: Built) -> None:
    x, out = np.zeros(4), np.zeros(1000)
    f = lambda i, x: i  # noqa: E731
    for program in (serial.load(), parallel.load()):
        for _ in range(10):
            program(x, out, 1, f)
        before = held()
        for _ in range(500):
            program(x, out, 1, f)
        assert growth(before) < 10_000
