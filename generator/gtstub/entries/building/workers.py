"""
The workers of this process, for all programs that it builds.

They start when there is work for them, and wait for more when there is none, a minute at most. A thread of this process
waits for each worker that builds, and for no other. A worker that is killed is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from threading import current_thread
from typing import Any

from gtstub.entries.building.lazy import FollowingBuild
from gtstub.entries.building.progress import builds
from gtstub.entries.building.worker import Reply, State, Worker, interrupt, is_worker
from gtstub.errors import CompilationError

IDLE = 60.0
"""Seconds after which a worker without work ends."""


CANCELLED = "A program could not be built: it was interrupted."

type Prepare = tuple[Callable[..., None], tuple[Any, ...]]
"""A function of a module that a worker calls before its first call, with its arguments."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    future: Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    needs: tuple[State, Prepare]
    cancellations: int
    """How often calls had been cancelled before."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Employed:
    """A worker with what it was started with. A job that needs something else needs another worker."""

    worker: Worker
    has: tuple[State, Prepare]


class Workers:
    """At most `most` worker processes."""

    def __init__(self) -> None:
        self.most = 1
        self._forget()

    def _forget(self) -> None:
        """Forgets all workers: those that a forked process finds here belong to its parent."""
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._threads: list[threading.Thread] = []
        self._active = 0
        self._cancellations = 0
        self._idle: list[_Employed] = []
        self._busy: set[Worker] = set()

    def submit(self, prepare: Prepare, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """
        Calls a function of a module in a worker. The result has a CompilationError if the worker is killed.

        Raises CompilationError in a worker, which has imported a main module that builds when it is imported.
        """
        if is_worker():
            raise CompilationError(
                "The main module was imported for a build, and builds programs when it is imported: put what it does"
                " under 'if __name__ == \"__main__\":'."
            )
        _watch_this_process()
        needs = State.now(), prepare
        with self._lock:
            job = _Job(Future(), function, args, kwargs, needs, self._cancellations)
            self._waiting.append(job)
            if self._active < self.most:
                self._active += 1
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                self._threads.append(threading.Thread(target=self._work, name="gtstub builds", daemon=True))
                try:
                    self._threads[-1].start()
                except BaseException:
                    self._active -= 1
                    self._threads.pop()
                    self._waiting.remove(job)
                    raise
        return job.future

    def hurry(self, future: Future[Any]) -> None:
        """Lets a call overtake those that wait before it. Does nothing for one that has begun."""
        with self._lock:
            job = next((job for job in self._waiting if job.future is future), None)
            if job is not None:
                self._waiting.remove(job)
                self._waiting.appendleft(job)

    def wait(self) -> None:
        """Waits for all calls and the threads that wait for them. An interrupt cancels them."""
        with self.shown():
            while others := [each for each in self._threads if each.is_alive() and each is not current_thread()]:
                others[0].join()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the progress of builds while the block waits for some of them. An interrupt cancels all calls."""
        try:
            with builds.shown():
                yield
        except KeyboardInterrupt:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Cancels the calls that wait, and ends those that run, with their workers and compilers."""
        with self._lock:
            waiting, busy = list(self._waiting), list(self._busy)
            self._waiting.clear()
            self._cancellations += 1
        for job in waiting:
            job.future.set_exception(CompilationError(CANCELLED))
        interrupt(busy)

    def end(self) -> None:
        """Ends the workers without work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.worker.end()

    # --- In the threads -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Has one worker run what waits, until nothing does."""
        employed: _Employed | None = None
        while True:
            with self._lock:
                if not self._waiting:
                    self._active -= 1
                    if employed is not None:
                        self._idle.append(employed)
                    return
                job = self._waiting.popleft()
                if employed is None and self._idle:
                    # The one that was used last: one that is idle for long ends.
                    fit = (each for each in reversed(self._idle) if each.has == job.needs)
                    employed = next(fit, self._idle[-1])
                    self._idle.remove(employed)
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                employed, reply = self._run(job, employed)
            except BaseException as error:
                employed = None
                job.future.set_exception(error)
            else:
                if reply.state == "done":
                    job.future.set_result(reply.value)
                else:
                    job.future.set_exception(reply.value)

    def _run(self, job: _Job, employed: _Employed | None) -> tuple[_Employed, Reply]:
        """The reply of a worker, which is `employed` if that fits, and has imported the main module if it has to."""
        if employed is not None and employed.has == job.needs:
            with contextlib.suppress(EOFError, OSError):  # It has ended while it had no work.
                reply = self._call(employed.worker, job)
                if reply.state != "unfit":
                    return employed, reply
        if employed is not None:
            employed.worker.end()
        for main in (False, True):
            worker = Worker.start(job.needs[0], idle=IDLE)
            try:
                reply = self._call(worker, job, first=True, main=main)
            except (EOFError, OSError):
                raise self._lost(worker, job) from None
            if reply.state != "unfit" or main:
                break
            worker.end()
        return _Employed(worker, job.needs), reply

    def _call(self, worker: Worker, job: _Job, *, first: bool = False, main: bool = False) -> Reply:
        """The last reply to a call. Raises CompilationError if it was cancelled, or its worker ends while it runs."""
        with self._lock:
            # It may have been cancelled while its thread looked for a worker.
            is_cancelled = job.cancellations != self._cancellations
            if not is_cancelled:
                self._busy.add(worker)
        if is_cancelled:
            interrupt([worker])
            raise CompilationError(CANCELLED)
        try:
            if first:
                function, args = job.needs[1]
                worker.send(function, *args)
                if (reply := worker.receive_result()).state != "done":
                    worker.end()  # so that no later call finds it, as if it were prepared
                    return reply
            worker.send(job.function, *job.args, main=main, **job.kwargs)
            worker.receive()
            try:
                return worker.receive_result()
            except (EOFError, OSError):
                raise self._lost(worker, job) from None
        finally:
            with self._lock:
                self._busy.discard(worker)

    def _lost(self, worker: Worker, job: _Job) -> CompilationError:
        """The error of a call whose worker has ended."""
        cause = worker.cause_of_exit()
        if job.cancellations != self._cancellations:
            return CompilationError(CANCELLED)
        return CompilationError(f"A program could not be built: {cause}.")


workers = Workers()
"""Those of this process."""


class ShownBuild(FollowingBuild):
    """The future of a build. While a thread waits for it, a terminal shows the progress of all builds."""

    def result(self, timeout: float | None = None) -> Any:
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        if not self.done():
            with workers.shown():
                wait([self], timeout)


@functools.cache
def _watch_this_process() -> None:
    os.register_at_fork(after_in_child=workers._forget)
    atexit.register(_end_at_exit)


def _end_at_exit() -> None:
    """Waits for all builds, but not if the process was interrupted. Leaves no worker."""
    if isinstance(getattr(sys, "last_exc", None), KeyboardInterrupt):
        workers.cancel()
    try:
        workers.wait()
    finally:
        workers.end()
