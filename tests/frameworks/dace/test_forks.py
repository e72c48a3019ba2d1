"""DaCe programs in forked children, which load their entries again."""

import os
import signal
import threading
import traceback
from collections.abc import Callable

import dace
import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.frameworks.dace import program as programs
from tests.support.recorded_dace import opaque

N = dace.symbol("N")
LEFT = []
BEGUN, ENDS = threading.Event(), threading.Event()


@gtstub.program
@dace.program
def doubled(a: dace.float64[N]):
    a[:] = a * 2


def in_child(run: Callable[[], None]) -> int:
    """The exit status of a forked child that runs a function."""
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(120)  # a child that waits for ever
        try:
            run()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check(program: gtstub.program = doubled) -> None:
    for size in (3, 3, 5):
        a = np.arange(size) * 1.0
        program(a)
        np.testing.assert_array_equal(a, np.arange(size) * 2.0)


def test_a_program_that_was_called_before_a_fork() -> None:
    check()
    assert in_child(check) == 0
    assert in_child(lambda: (check(), None if in_child(check) == 0 else 1 / 0)) == 0  # a child of a child
    check()


def test_a_bound_call_is_refused_and_bound_again() -> None:
    a = np.ones(3)
    call = _host.bind(doubled, a)

    def run() -> None:
        with pytest.raises(RuntimeError, match="was loaded before this process was forked"):
            call()
        _host.bind(doubled, a)()
        assert list(a) == [2, 2, 2]

    assert in_child(run) == 0


def test_another_thread_parses_while_a_process_forks() -> None:
    """The lock that it has is that of no thread in the child."""
    check()
    begun, ends = threading.Event(), threading.Event()

    def parse() -> None:
        with programs._PARSING:
            begun.set()
            ends.wait(60)

    thread = threading.Thread(target=parse)
    thread.start()
    begun.wait(60)
    try:
        assert in_child(check) == 0
    finally:
        ends.set()
        thread.join()
    check()


@opaque
def forks(x: float) -> None:
    LEFT.append(in_child(check))


@gtstub.program
@dace.program
def with_callback(a: dace.float64[3]):
    forks(a[0])
    a[:] = a + 1


def test_a_callback_forks() -> None:
    a = np.zeros(3)
    check()
    with_callback(a)
    assert LEFT == [0]
    assert list(a) == [1, 1, 1]


@opaque
def waits(x: float) -> None:
    if x > 0:
        BEGUN.set()
        ENDS.wait(60)


@gtstub.program
@dace.program
def with_waiting_callback(a: dace.float64[3]):
    waits(a[0])
    a[:] = a + 1


def test_another_thread_is_in_a_callback_while_a_process_forks() -> None:
    """The call goes on in the parent alone, so that a call in the child does not wait for it."""

    def run() -> None:
        a = np.zeros(3)
        with_waiting_callback(a)
        assert list(a) == [1, 1, 1]

    run()
    a = np.ones(3)
    thread = threading.Thread(target=with_waiting_callback, args=(a,))
    thread.start()
    BEGUN.wait(60)
    try:
        assert in_child(run) == 0
    finally:
        ENDS.set()
        thread.join()
    assert list(a) == [2, 2, 2]
