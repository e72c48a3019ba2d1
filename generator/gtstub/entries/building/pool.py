"""
A pool of worker processes that build variants of programs. Each worker imports gt4py once, which takes seconds, and
then runs one job after another.

If a worker is killed, for example because memory runs out, only its job fails, and a new worker replaces it. If it was
idle, no job fails.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from pathlib import Path

from gtstub import settings
from gtstub.entries.building.jobs import Job, failed
from gtstub.entries.building.outcome import Outcome
from gtstub.entries.building.progress import builds
from gtstub.entries.building.worker import State, Worker, interrupt
from gtstub.errors import reason

ENVIRONMENT = {
    "GT4PY_BUILD_JOBS_MODE": "serial",  # a worker is itself one of several
    "GTSTUB_MODE": "Build",  # loads no entry, because this machine may be unable to run it
    "OMP_NUM_THREADS": "1",
}


type Work[R] = Callable[[Job], R | Outcome]
"""What a worker does with a job: a function of a module, or a partial of one. It returns errors as outcomes."""


@dataclasses.dataclass
class _Employed:
    """
    A worker with its log, and its job. `has_begun` says whether it runs this job, `has_served` whether it has finished
    one before: a worker that cannot even start is not replaced.
    """

    worker: Worker
    log: Path
    job: Job | None = None
    has_begun: bool = False
    has_served: bool = False


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
        self._workers: list[_Employed] = []

    def __enter__(self) -> Pool:
        self._logs = tempfile.TemporaryDirectory(prefix="gtstub-build-")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        interrupt([each.worker for each in self._workers if kind is not None or each.job is not None])
        for each in self._workers:
            each.worker.end()
        self._logs.cleanup()

    def run[R](self, jobs: Sequence[Job], work: Work[R]) -> Iterator[tuple[Job, R | Outcome | None]]:
        """Runs `work` for the jobs in their order. Yields each job when it begins, with None, and with its result."""
        waiting = deque(jobs)
        while waiting or any(each.job for each in self._workers):
            if waiting and len(self._workers) < self._most:
                self._workers.append(_start(Path(self._logs.name)))
            for each in [each for each in self._workers if each.job is None]:
                if waiting:
                    each.job, each.has_begun = waiting.popleft(), False
                    yield each.job, None
                    try:
                        each.worker.send(work, each.job)
                    except OSError:
                        yield from self._lose(each, waiting)
            busy = {each.worker.pipe: each for each in self._workers if each.job}
            if not busy or (waiting and len(self._workers) < self._most):
                continue
            for pipe in connection.wait(list(busy)):
                each = busy[pipe]  # type: ignore[index]
                assert each.job is not None
                try:
                    reply = each.worker.receive()
                except (EOFError, ConnectionError):
                    yield from self._lose(each, waiting)
                    continue
                if reply.state == "news":
                    builds.note(dataclasses.replace(reply.value, label=each.job.label))
                each.has_begun = True
                if reply.state in ("begun", "news"):
                    continue
                job, each.job, each.has_served = each.job, None, True
                yield job, reply.value if reply.state == "done" else failed(job, reason(reply.value))

    def _lose(self, lost: _Employed, waiting: deque[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Another worker gets the job of a worker that was killed while it had nothing to do. Other jobs fail."""
        self._workers.remove(lost)
        assert lost.job is not None
        if lost.has_served and not lost.has_begun:
            lost.worker.end()
            waiting.appendleft(lost.job)
        else:
            yield lost.job, failed(lost.job, lost.worker.cause_of_exit(lost.log))


def _start(logs: Path) -> _Employed:
    log = logs / f"{os.urandom(4).hex()}.log"
    here = State.now()
    environment = {name: value for name, value in here.environment.items() if name != settings.FV3_MODE}
    state = dataclasses.replace(here, environment=environment | ENVIRONMENT)
    return _Employed(Worker.start(state, log=log), log)
