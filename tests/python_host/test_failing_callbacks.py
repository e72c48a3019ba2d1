"""Exceptions in functions that an SDFG calls, and signals meanwhile."""

from __future__ import annotations

import _thread
import signal
import threading
import traceback
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.calling_programs import PARALLEL, SERIAL, another_thread, call

pytestmark = [pytest.mark.sanitizer, pytest.mark.usefixtures("no_deadlock")]


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return SERIAL.build(tmp_path_factory.mktemp("serial"), toolchain).load()


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return PARALLEL.build(tmp_path_factory.mktemp("parallel"), toolchain).load()


@pytest.fixture(params=["kept", "released"])
def gil(request: pytest.FixtureRequest) -> Iterator[None]:
    """A call keeps the GIL if there is no other thread of Python."""
    if request.param == "kept":
        yield
        return
    with another_thread():
        yield


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also in a job that a shell has started in the background with SIGINT ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def fails_at(number: int, error: Callable[[], BaseException], calls: list[int]) -> Callable[..., float]:
    def f(i: int, _: object) -> float:
        calls.append(i)
        if i == number:
            raise error()
        return 1.0

    return f


@pytest.mark.usefixtures("gil")
@pytest.mark.parametrize("error", [KeyError, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
@pytest.mark.parametrize("number", [0, 4, 9])
def test_an_exception_is_raised_by_the_call(serial: _host.Program, error: type[BaseException], number: int) -> None:
    calls: list[int] = []
    raised = error("why")
    out = np.full(10, -1.0)
    with pytest.raises(error) as caught:
        serial(np.zeros(4), out, 1, fails_at(number, lambda: raised, calls))
    assert caught.value is raised
    assert calls == [*range(number + 1)]
    assert out.tolist() == [1.0] * number + [0.0] * (10 - number)
    assert [frame.name for frame in traceback.extract_tb(raised.__traceback__)][-1] == "f"
    assert call(serial, fails_at(-1, KeyError, calls)).tolist() == [1.0] * 10


def test_an_exception_has_its_cause_and_its_context(serial: _host.Program) -> None:
    def f(_: int, __: object) -> float:
        try:
            raise KeyError(1)
        except KeyError as error:
            raise ValueError(2) from error

    with pytest.raises(ValueError, match=r"^2$") as caught:
        call(serial, f)
    assert repr(caught.value.__cause__) == "KeyError(1)"
    assert caught.value.__context__ is caught.value.__cause__


def test_an_exception_has_the_context_of_the_caller(serial: _host.Program) -> None:
    outer, inner = KeyError("outer"), ValueError("inner")
    try:
        raise outer
    except KeyError:
        with pytest.raises(ValueError, match=r"^inner$"):
            call(serial, fails_at(0, lambda: inner, []))
    assert inner.__context__ is outer


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_one_thread_of_several_fails(parallel: _host.Program, threads: int) -> None:
    calls: list[int] = []
    with pytest.raises(KeyError, match=r"^0$"):
        call(parallel, fails_at(0, lambda: KeyError(0), calls), 400, threads)
    assert 0 in calls
    assert len(calls) < 400 if threads == 1 else len(calls) <= 400
    assert call(parallel, fails_at(-1, KeyError, calls), 40, threads).tolist() == [1.0] * 40


def test_all_threads_fail_and_one_exception_is_raised(parallel: _host.Program) -> None:
    barrier = threading.Barrier(4)

    def f(i: int, _: object) -> float:
        barrier.wait()
        raise KeyError(i)

    with pytest.raises(KeyError) as caught:
        call(parallel, f, 4, 4)
    assert caught.value.args[0] in range(4)
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_in_a_callback_is_raised_there(serial: _host.Program) -> None:
    calls: list[int] = []

    def f(i: int, _: object) -> float:
        calls.append(i)
        if i == 1:
            signal.raise_signal(signal.SIGINT)
            calls.append(-1)
        return 1.0

    with pytest.raises(KeyboardInterrupt) as caught:
        call(serial, f)
    assert calls == [0, 1]
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "f"


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_between_callbacks_is_raised_in_the_next(parallel: _host.Program) -> None:
    """A handler runs in the main thread; C code delays it."""
    calls: list[int] = []

    def f(i: int, _: object) -> float:
        calls.append(i)
        if i == 3:
            _thread.interrupt_main()
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        call(parallel, f, 100)
    assert calls[0] == 0
    assert len(calls) < 100
    assert call(parallel, lambda *_: 2.0).tolist() == [2.0] * 10
