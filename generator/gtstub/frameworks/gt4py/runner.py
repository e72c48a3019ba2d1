"""
A runner of compilation tasks that starts processes only for programs without a cache entry.

gt4py submits every program to worker processes, which take seconds to start, import the main module of the model, and
end in `wait_for_compilation()`. gtstub's programs are built in its own, which stay for the next ones; those of gt4py's
own backends are built as before.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import threading
from typing import Any

from gt4py.next.otf import runners

from gtstub.entries.building.orphans import end_with_parent
from gtstub.entries.building.own_errors import trim
from gtstub.entries.building.pending import done
from gtstub.entries.building.progress import builds
from gtstub.entries.building.workers import ShownBuild, workers
from gtstub.frameworks.gt4py.internals import ExecutorRunner, ProcessSettings, prepare_workers, process_settings
from gtstub.frameworks.gt4py.stages import FoundProgramDef, LoweredProgramDef


def _end_with_pool() -> None:
    """In a process of gt4py's pool: lets it end with the process that has started it, which may be a forked one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    end_with_parent(parent.pid)


class FindingRunner:
    """
    Returns the entry that the lowering step found. Or else submits the task to the workers of this process, if gt4py's
    runner, which is created on demand, would use processes; or to that runner.
    """

    def __init__(self, own: runners.Runner | None = None) -> None:
        self._own = own
        self._settings = process_settings(own) if own is not None else None
        self._making = threading.Lock()

    def submit(self, task: runners.CompilationTask) -> concurrent.futures.Future[Any]:
        # A backend with a `compile` of its own cannot be offloaded; its task is opaque.
        found = None if task.no_offload_reason else task.construct_compilable(False)
        if isinstance(found, FoundProgramDef):
            return done(found.entry)
        if not isinstance(found, LoweredProgramDef) or found.request is None:
            return self._submit(task, found)
        key = found.request.key
        builds.queue(key)
        try:
            with workers.shown():  # for a runner that builds at once
                future = self._submit(task, found)
        except BaseException as error:
            builds.end(key, error)
            raise
        builds.end_with(key, future)
        future.add_done_callback(_trim)
        if not found.is_waiting or future.done():
            return future
        shown = ShownBuild()
        shown.follow(future)
        return shown

    def _submit(self, task: runners.CompilationTask, found: Any) -> concurrent.futures.Future[Any]:
        with self._making:
            if self._own is None:
                self._own = _from_config()
                self._settings = process_settings(self._own)
                prepare_workers(self._own, _end_with_pool)
        if self._settings is None or not isinstance(found, LoweredProgramDef):
            future: concurrent.futures.Future[Any] = self._own.submit(task)
            return future
        future = ExecutorRunner(_Submitting(self._settings)).submit(task)
        if found.is_waiting:
            workers.hurry(future)
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Ends gt4py's own processes and threads. The workers of this process wait for the next builds."""
        if self._own is not None:
            self._own.shutdown(wait)
        if wait:
            workers.wait()


class _Submitting(concurrent.futures.Executor):
    """The workers of this process, as an executor with the settings of gt4py's."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        workers.most = self._settings.workers
        return workers.submit(self._settings.prepare, function, *args, **kwargs)


def _trim(build: concurrent.futures.Future[Any]) -> None:
    trim(build.exception())


_from_config = runners.from_config
