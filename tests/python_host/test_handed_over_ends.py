"""Steps that Python hands over, in threads of C, after forks, and after Python has ended."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.abi import SONAME
from gtstub.install import RUNTIME
from tests.support.handed_over import (
    RUNTIME_ERROR,
    CStep,
    in_thread,
    refused,
)
from tests.support.hosting import Bound, good_arguments, run_script
from tests.support.scale_program import N

pytestmark = [pytest.mark.sanitizer, pytest.mark.usefixtures("no_deadlock", "nothing_left")]


# --- The GIL ----------------------------------------------------------------------------------------------------------


def test_programs_run_while_another_thread_has_the_gil(
    library: Path, scale: _host.Program, now: np.ndarray, new: np.ndarray
) -> None:
    """A call through PyDLL has the GIL until the thread of C has ended, which then cannot have needed it."""
    inner = gtstub.Step([scale.bind(now, 2.0, new)])
    with gtstub.hand_over(gtstub.Step([inner, scale.bind(new, 2.0, now)]), "step"):
        assert in_thread(ctypes.CDLL(str(library)), "step") == ""  # the first call of a program needs the GIL
        assert in_thread(ctypes.PyDLL(str(library)), "step", 2) == ""
    assert now.tolist() == [64.0] * N


def test_functions_run_with_the_gil_in_any_thread(library: Path, scale: _host.Program, now: Any, new: Any) -> None:
    host = ctypes.CDLL(str(library))
    idents: list[int] = []

    def count() -> None:
        idents.append(threading.get_ident())

    step = gtstub.Step([scale.bind(now, 2.0, new), count, gtstub.Step([gtstub.action(count)])])
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        assert in_thread(host, "step", 5) == ""
        c.run()
        c.free()
        holds = CStep("step", ctypes.PyDLL(SONAME))
        holds.run()  # in a thread that has the GIL
        holds.free()
    assert len(idents) == 14
    assert set(idents[:10]).isdisjoint(idents[10:])


def test_two_threads(library: Path, scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """Python runs the step: C and take_back() are refused; and the other way round."""
    host = ctypes.CDLL(str(library))
    in_it, may_go = threading.Event(), threading.Event()
    busy = "Step 'dynamics' is running, in another thread or because one of its functions uses it."

    def wait() -> None:
        in_it.set()
        assert may_go.wait(60)

    def check() -> None:
        assert in_it.wait(60)
        assert in_thread(host, "step") == busy
        for use in (step, partial(step.set, factor=3.0), partial(gtstub.take_back, "step")):
            with pytest.raises(RuntimeError, match=busy):
                use()
        may_go.set()

    step = gtstub.Step([scale.bind(now, 2.0, new), wait], "dynamics")
    with gtstub.hand_over(step, "step"):
        c = CStep("step")
        for run in (step, c.run):
            thread = threading.Thread(target=run)
            thread.start()
            check()
            thread.join()
            in_it.clear()
            may_go.clear()
        c.free()


def test_threads_take_turns(library: Path, scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    """C runs one step while Python runs another one with the same program and a function."""
    host = ctypes.CDLL(str(library))
    count = [0]

    def add() -> None:
        count[0] += 1

    mine = gtstub.Step([scale.bind(now, 2.0, np.zeros(N)), add])
    with gtstub.hand_over(gtstub.Step([scale.bind(now, 3.0, new), add]), "step"):
        assert host.start_endless(b"step") == 0
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            mine()
        text = ctypes.create_string_buffer(1024)
        while True:
            try:
                gtstub.take_back("step")
                break
            except RuntimeError:
                time.sleep(1e-4)
        host.join_endless(text)
        assert text.value == b"Step 'step' cannot be used: it was taken back."
        gtstub.hand_over(gtstub.Step([]), "step")
    assert count[0] > 3


def test_programs_that_read_objects_run_with_the_gil(library: Path, bound: Bound) -> None:
    """A zero-dimensional field, whose value may change, and gt4py's metrics."""
    host = ctypes.CDLL(str(library))
    arguments, namespace, samples = good_arguments(), {"LEVEL": 0}, list[float]()
    program = bound.load()
    program.set_metrics(namespace, "LEVEL", 10, samples.append)
    with gtstub.hand_over(gtstub.Step([program.bind(**arguments)]), "step"):
        for value in (2.5, 3.5):
            arguments["x"][1][1][...] = value
            assert in_thread(host, "step") == ""
            assert bound.last()["x_1_1"] == value
        namespace["LEVEL"] = 10
        assert in_thread(host, "step", 2) == ""
    assert len(samples) == 2


# --- Processes --------------------------------------------------------------------------------------------------------


def exit_child() -> None:
    os._exit(7)


def in_child(function: Callable[[], None]) -> None:
    """Runs a function in a forked child, which must end by exit_child()."""
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # the thread of no_deadlock
def test_after_a_fork(scale: _host.Program, now: np.ndarray, new: np.ndarray) -> None:
    def child() -> None:
        message = "Step 'dynamics' cannot be used: it was handed over before this process was forked."
        for use in (lambda: CStep("step"), c.run, lambda: c.set(ctypes.c_double(1.0)), lambda: c.swap(now, new)):
            with refused(RUNTIME_ERROR, message):
                use()
        gtstub.take_back("step")
        c.free()
        with gtstub.hand_over(gtstub.Step([exit_child], "own"), "step"):
            CStep("step").run()

    with gtstub.hand_over(gtstub.Step([scale.bind(now, 2.0, new)], "dynamics"), "step"):
        c = CStep("step")
        in_child(child)
        c.run()
        c.free()


COPY_SCRIPT = """
import ctypes, sys
import gtstub
from tests.support.handed_over import CStep
gtstub.hand_over(gtstub.Step([], "dynamics"), "step")
try:
    CStep("step", ctypes.CDLL(sys.argv[1]))
except Exception as error:
    print(error)
"""


def test_another_copy_of_the_runtime(tmp_path: Path) -> None:
    """A host that has loaded another libgtstub by its path, or contains one, does not see the steps of this one."""
    copy = tmp_path / SONAME
    copy.write_bytes(RUNTIME.read_bytes())
    assert run_script(COPY_SCRIPT, copy) == (
        f"No step was handed over as 'step' to '{copy}'; Python may have handed it over to another copy of this "
        f"library, '{RUNTIME}'.\n"
    )


SCRIPT = """
import atexit, ctypes, sys
import numpy as np
import gtstub
from gtstub import _host
def hand_over():
    try:
        gtstub.hand_over(gtstub.Step([], "late"), "late")
    except RuntimeError as error:
        print(error, flush=True)
atexit.register(hand_over)
_, stub, library, host, use = sys.argv
program = _host.load(stub, library)
step = gtstub.Step([program.bind(np.ones(5), 2.0, np.zeros(5)), list], "dynamics")
gtstub.hand_over(step, "dynamics")
assert getattr(ctypes.CDLL(host), use)(b"dynamics") == 0
"""


@pytest.mark.parametrize("use", ["use_at_exit", "use_at_exit_too"])
def test_after_python_has_ended(parts: tuple[Path, Path], library: Path, use: str) -> None:
    ended = "Step 'dynamics' cannot be used: Python has ended."
    lines = run_script(SCRIPT, *parts, library, use).splitlines()
    assert lines.pop(0) == "Step 'late' cannot be handed over at the end of the interpreter."
    if use == "use_at_exit_too":  # a thread was running the step again and again
        assert lines.pop(0) == ended
    assert lines == [
        f"-1 {ended}",
        f"-1 {ended}",
        "-1 No step was handed over as 'dynamics', nor under any other name.",
    ]
