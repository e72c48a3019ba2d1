"""The workers of a process: how many there are, when they start and end, and what they know of the process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from gtstub.entries.building import workers as module
from gtstub.entries.building.worker import UnfitError
from gtstub.entries.building.workers import Workers
from gtstub.errors import CompilationError

PATIENCE = 60
"""Seconds. A test that fails waits as long."""


def nothing() -> None: ...


def number_of_process(*_: Any) -> int:
    return os.getpid()


def masks_of_threads() -> set[bool]:
    """Whether each thread but the main one blocks the signals that end a worker."""
    masks = set()
    for thread in Path("/proc/self/task").iterdir():
        if int(thread.name) != os.getpid():
            (mask,) = re.findall(r"SigBlk:\t(\w+)", (thread / "status").read_text())
            masks.add(all(int(mask, 16) >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM)))
    return masks


def variable(name: str) -> str | None:
    return os.environ.get(name)


def note(file: Path, text: str) -> None:
    with file.open("a") as out:
        out.write(text)


def wait_for(file: Path) -> int:
    while not file.exists():
        time.sleep(0.02)
    return os.getpid()


def refuse(error: Exception) -> None:
    raise error


def unfit_at_first(file: Path) -> int:
    """A worker other than the one that refused has to be asked."""
    if not file.exists():
        file.write_text(str(os.getpid()))
        raise UnfitError("other modules")
    return os.getpid()


class UnpicklableError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_unpicklable() -> None:
    raise UnpicklableError(1, 2)


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.cancel()
    workers.wait()
    workers.end()


def submit(workers: Workers, function: Any, *args: Any) -> Any:
    return workers.submit((nothing, ()), function, *args)


def call(workers: Workers, function: Any, *args: Any) -> Any:
    return submit(workers, function, *args).result(PATIENCE)


def until_ended(worker: int) -> None:
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)


def test_workers_start_once(workers: Workers) -> None:
    """Between two waits, no thread of this process waits for them."""
    workers.most = 2
    pids = set()
    before = set(threading.enumerate())
    for _ in range(3):
        builds = [submit(workers, number_of_process) for _ in range(4)]
        pids |= {build.result(PATIENCE) for build in builds}
        workers.wait()
        assert set(threading.enumerate()) <= before  # threads of earlier tests may end
    assert len(pids) <= 2
    assert os.getpid() not in pids


def test_a_second_worker_starts_when_the_first_is_busy(workers: Workers, tmp_path: Path) -> None:
    workers.most = 2
    first, second = submit(workers, wait_for, tmp_path / "go"), submit(workers, note, tmp_path / "go", "")
    assert second.result(PATIENCE) is None
    assert first.result(PATIENCE)


def test_a_worker_that_is_killed_while_it_has_nothing_to_do_is_replaced(workers: Workers) -> None:
    first = call(workers, number_of_process)
    workers.wait()
    os.kill(first, signal.SIGKILL)
    until_ended(first)
    assert call(workers, number_of_process) != first


def test_a_worker_that_is_killed_costs_one_build(workers: Workers, tmp_path: Path) -> None:
    first = call(workers, number_of_process)
    lost, kept = submit(workers, wait_for, tmp_path / "never"), submit(workers, number_of_process)
    while not lost.running():
        time.sleep(0.01)
    time.sleep(0.2)  # until the worker has begun: one that has not begun is replaced without a loss
    os.kill(first, signal.SIGKILL)
    with pytest.raises(CompilationError, match="SIGKILL killed its build process, perhaps because memory ran out"):
        lost.result(PATIENCE)
    assert kept.result(PATIENCE) != first


def test_idle_workers_end(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE", 0.1)
    first = call(workers, number_of_process)
    workers.wait()
    until_ended(first)
    assert call(workers, number_of_process) != first


def test_a_changed_environment_needs_another_worker(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    first = call(workers, number_of_process)
    monkeypatch.setenv("FLAGS_OF_A_TEST", "-O2")
    assert call(workers, variable, "FLAGS_OF_A_TEST") == "-O2"
    assert call(workers, number_of_process) != first
    workers.wait()
    assert len(workers._idle) == 1


def test_a_build_begins_where_it_was_submitted(workers: Workers, tmp_path: Path) -> None:
    """Also if the process has gone elsewhere before the build begins."""
    before = Path.cwd()
    os.chdir(tmp_path)
    first = submit(workers, wait_for, tmp_path / "go")
    build = submit(workers, Path.cwd)
    os.chdir(before)
    elsewhere = submit(workers, Path.cwd)
    (tmp_path / "go").touch()
    assert first.result(PATIENCE)
    assert (build.result(PATIENCE), elsewhere.result(PATIENCE)) == (tmp_path, before)


def test_preparation_comes_first_and_once(workers: Workers, tmp_path: Path) -> None:
    prepare = (note, (tmp_path / "prepared", "x"))
    for _ in range(2):
        workers.submit(prepare, number_of_process).result(PATIENCE)
    assert (tmp_path / "prepared").read_text() == "x"


def test_a_preparation_that_fails_is_the_error_of_the_build(workers: Workers) -> None:
    with pytest.raises(ValueError, match="no preparation"):
        workers.submit((refuse, (ValueError("no preparation"),)), number_of_process).result(PATIENCE)
    assert call(workers, number_of_process)


def test_errors_come_as_they_are(workers: Workers) -> None:
    with pytest.raises(KeyError, match="missing") as caught:
        call(workers, refuse, KeyError("missing"))
    assert "refuse" in caught.value.__notes__[0], "The traceback of the worker is a note."
    with pytest.raises(RuntimeError, match="UnpicklableError: 1 and 2"):
        call(workers, raise_unpicklable)
    with pytest.raises(TypeError, match="cannot pickle"):
        call(workers, threading.Lock)


def test_another_worker_is_asked_if_one_is_unfit(workers: Workers, tmp_path: Path) -> None:
    file = tmp_path / "refused"
    fit = call(workers, unfit_at_first, file)
    assert fit != int(file.read_text())
    assert call(workers, number_of_process) == fit
    with pytest.raises(UnfitError, match="always"):
        call(workers, refuse, UnfitError("always"))


def test_builds_overtake_others(workers: Workers, tmp_path: Path) -> None:
    submit(workers, wait_for, tmp_path / "go")
    builds = {name: submit(workers, note, tmp_path / "order", name) for name in "abcd"}
    workers.hurry(builds["c"])
    workers.hurry(builds["b"])
    (tmp_path / "go").touch()
    wait(builds.values(), PATIENCE)
    assert (tmp_path / "order").read_text() == "bcad"
    workers.hurry(builds["d"])  # has ended


# --- Processes --------------------------------------------------------------------------------------------------------

BUILDS = """
import os, time
from pathlib import Path

def number_of_process():
    return os.getpid()

def build(name, seconds=0.0):
    time.sleep(seconds)
    Path(name).write_text(str(os.getpid()))
"""

BEGIN = """
import os, signal, sys, time, warnings
from builds import build, number_of_process
from gtstub.entries.building.workers import workers

def submit(function, *args):
    return workers.submit((time.sleep, (0,)), function, *args)
"""


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "builds.py").write_text(BUILDS)
    (folder / "script.py").write_text(BEGIN + textwrap.dedent(script))
    command = [sys.executable, "script.py"]
    # Pipes end when the last worker has ended.
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_main_module_is_not_imported(tmp_path: Path) -> None:
    """So a script needs no `if __name__ == "__main__"`."""
    result = run(tmp_path, "print('imported', flush=True)\nprint(submit(number_of_process).result() != os.getpid())")
    assert (result.stdout, result.stderr) == ("imported\nTrue\n", "")


def test_the_main_module_is_imported_where_a_build_needs_it(tmp_path: Path) -> None:
    script = """
        def own():
            return __name__, os.getpid()
        if __name__ == "__main__":
            (name, first), (_, second) = submit(own).result(), submit(own).result()
            print(name, first == second != os.getpid())
        """
    result = run(tmp_path, script)
    assert (result.stdout, result.stderr) == ("__mp_main__ True\n", "")


def test_a_main_module_that_builds_when_it_is_imported_is_refused(tmp_path: Path) -> None:
    """If a build needs the main module. The worker does not build."""
    result = run(tmp_path, "def own(): pass\nsubmit(own).result()")
    assert result.returncode == 1
    assert "put what it does under 'if __name__ == \"__main__\":'" in result.stderr


def test_a_process_that_ends_waits_for_its_builds_and_leaves_no_worker(tmp_path: Path) -> None:
    result = run(tmp_path, "for name in 'abc': submit(build, name, 0.2)")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} >= {"a", "b", "c"}


@pytest.mark.parametrize("whom", ["os.kill(os.getpid()", "os.killpg(0"], ids=["process", "group, as Ctrl-C"])
def test_an_interrupted_process_leaves_no_worker(tmp_path: Path, whom: str) -> None:
    script = f"""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also if these tests run in the background
        os.setpgrp()
        workers.most = 2
        submit(build, "first").result()
        builds = [submit(build, name, 1000) for name in ("second", "third", "fourth")]
        while not all(each.running() for each in builds[:2]):
            time.sleep(0.01)
        time.sleep(0.5)
        {whom}, signal.SIGINT)
        builds[0].result()
        """
    result = run(tmp_path, script)
    assert result.returncode == -signal.SIGINT or "CompilationError" in result.stderr, result.stderr
    assert not {path.name for path in tmp_path.iterdir()} & {"second", "third", "fourth"}


def test_a_worker_takes_signals_in_its_main_thread(workers: Workers) -> None:
    """Two signals of which another thread takes the first would leave the main thread in its system call."""
    assert call(workers, masks_of_threads) == {True}


def test_a_call_is_cancelled_that_its_worker_has_not_begun(tmp_path: Path) -> None:
    """A call whose worker ends before it begins gets another worker, unless it was cancelled."""
    script = """
        first = submit(number_of_process).result()
        workers.wait()
        os.kill(first, signal.SIGSTOP)
        second = submit(build, "second")
        while not workers._busy:
            time.sleep(0.01)
        workers.cancel()
        print(type(second.exception()).__name__)
        """
    result = run(tmp_path, script)
    assert (result.stdout, result.stderr) == ("CompilationError\n", "")
    assert not (tmp_path / "second").exists()


def test_a_forked_process_has_workers_of_its_own(tmp_path: Path) -> None:
    """It neither uses nor ends those of its parent."""
    script = """
        first = submit(number_of_process).result()
        workers.wait()
        warnings.simplefilter("ignore", DeprecationWarning)  # A thread that was joined may still be ending.
        if os.fork() == 0:
            print(submit(number_of_process).result() != first, flush=True)
            sys.exit()
        os.wait()
        print(submit(number_of_process).result() == first)
        """
    result = run(tmp_path, script)
    assert (result.stdout, result.stderr) == ("True\nTrue\n", "")
