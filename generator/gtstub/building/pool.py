"""
A pool of worker processes that build variants of programs. Each worker imports gt4py once, which takes seconds, and
then runs one job after another.

If a worker is killed, for example because memory runs out, only its job fails, and a new worker replaces it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from gtstub.building.jobs import Job, failed
from gtstub.building.orphans import end_with_parent
from gtstub.building.outcome import Outcome

PATIENCE = 5.0
"""Seconds that a worker has to exit before it is killed."""

ENVIRONMENT = {
    "GT4PY_BUILD_JOBS_MODE": "serial",  # a worker is itself one of several
    "GTSTUB_MODE": "Build",  # loads no entry, because this machine may be unable to run it
    "OMP_NUM_THREADS": "1",
}


type Work[R] = Callable[[Job], R | Outcome]
"""What a worker does with a job: a function of a module, or a partial of one. It returns errors as outcomes."""


@dataclasses.dataclass
class _Worker:
    process: SpawnProcess
    pipe: connection.Connection[Any, Any]
    log: Path
    job: Job | None = None


@dataclasses.dataclass(frozen=True)
class Progress:
    """A job that has begun, or has ended if it has an outcome."""

    job: Job
    outcome: Outcome | None = None


def run(
    jobs: Sequence[Job],
    workers: int,
    size: Work[int],
    order: Callable[[Sequence[tuple[Job, int]]], Sequence[Job]],
    build: Work[Outcome],
) -> Iterator[Progress]:
    """
    Runs `size` for each job, in `workers` processes. Those that have a size, and no outcome yet, are then built in the
    same processes, in the order that `order` returns.

    Closing the iterator, or an exception such as KeyboardInterrupt, ends the workers and their compilers.
    """
    with Pool(workers) as pool:
        sized: list[tuple[Job, int]] = []
        for job, result in pool.run(jobs, size):
            if isinstance(result, Outcome):
                yield from (Progress(job), Progress(job, result))
            elif result is not None:
                sized.append((job, result))
        for job, result in pool.run(order(sized), build):
            yield Progress(job, result)


class Pool:
    """Worker processes, which start when there is work for them, and end with the block."""

    def __init__(self, workers: int) -> None:
        self._most = workers
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        self._logs = tempfile.TemporaryDirectory(prefix="gtstub-build-")
        return self

    def __exit__(self, *_: object) -> None:
        _end(self._workers)
        self._logs.cleanup()

    def run[R](self, jobs: Sequence[Job], work: Work[R]) -> Iterator[tuple[Job, R | Outcome | None]]:
        """Runs `work` for the jobs in their order. Yields each job when it begins, with None, and with its result."""
        waiting = deque(jobs)
        while waiting or any(worker.job for worker in self._workers):
            if waiting and len(self._workers) < self._most:
                self._workers.append(_start(Path(self._logs.name)))
            for worker in list(self._workers):
                if worker.job is None and waiting:
                    job = waiting.popleft()
                    yield job, None
                    try:
                        worker.pipe.send((work, job))
                    except OSError:  # It was killed while it had nothing to do.
                        self._workers.remove(worker)
                        yield job, failed(job, _cause_of_exit(worker))
                        continue
                    worker.job = job
            if waiting and len(self._workers) < self._most:
                continue
            busy = {worker.pipe: worker for worker in self._workers if worker.job}
            for pipe in connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                assert worker.job is not None
                job, worker.job = worker.job, None
                try:
                    result = worker.pipe.recv()
                except (EOFError, ConnectionError):
                    self._workers.remove(worker)
                    result = failed(job, _cause_of_exit(worker))
                yield job, result


def _start(logs: Path) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    log = logs / f"{os.urandom(4).hex()}.log"
    process = context.Process(target=_work, args=(theirs, log, sys.path), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, log)


def _cause_of_exit(worker: _Worker) -> str:
    worker.process.join(PATIENCE)
    _kill(worker, signal.SIGKILL)
    code = worker.process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return f"{name} killed its build process{hint}"
    lines = worker.log.read_text(errors="replace").splitlines() if worker.log.exists() else []
    return f"its build process ended with exit status {code}{': ' + lines[-1] if lines else ''}"


def _end(pool: Sequence[_Worker]) -> None:
    for worker in pool:
        worker.pipe.close()  # An idle worker exits.
        if worker.job is not None:
            _kill(worker, signal.SIGTERM)
    for worker in pool:
        worker.process.join(PATIENCE)
        if worker.process.is_alive():
            _kill(worker, signal.SIGKILL)
            worker.process.join()


def _kill(worker: _Worker, number: signal.Signals) -> None:
    """Sends a signal to the worker and its compilers, which form a process group as soon as the worker has started."""
    assert worker.process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.process.pid, number)
    if worker.process.is_alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.process.pid, number)


# --- In the worker ----------------------------------------------------------------------------------------------------


def _work(pipe: connection.Connection[Any, Any], log: Path, path: list[str]) -> None:
    os.setsid()  # Ctrl-C interrupts the parent, which ends this process and its compilers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    end_with_parent()
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(ENVIRONMENT)
    os.environ.pop("FV3_DACEMODE", None)
    sys.path[:] = path
    while True:
        try:
            work, job = pipe.recv()
        except EOFError:
            return
        pipe.send(work(job))
