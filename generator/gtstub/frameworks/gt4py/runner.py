"""
A runner of compilation tasks that calls gt4py's own runner only for programs without a cache entry.

gt4py submits every program to worker processes, each of which takes seconds to start.
"""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any

from gt4py.next.otf import runners

from gtstub.building.orphans import end_with_parent
from gtstub.building.pending import done
from gtstub.frameworks.gt4py.internals import move_to_front, prepare_workers
from gtstub.frameworks.gt4py.stages import FoundProgramDef, LoweredProgramDef


class FindingRunner:
    """Returns the entry that the lowering step found, or submits the task to gt4py's own runner, created on demand."""

    def __init__(self, own: runners.Runner | None = None) -> None:
        self._own = own
        self._making = threading.Lock()

    def submit(self, task: runners.CompilationTask) -> concurrent.futures.Future[Any]:
        # A backend with a `compile` of its own cannot be offloaded; its task is opaque.
        found = None if task.no_offload_reason else task.construct_compilable(False)
        if isinstance(found, FoundProgramDef):
            return done(found.entry)
        with self._making:
            if self._own is None:
                self._own = _from_config()
                prepare_workers(self._own, end_with_parent)
        future: concurrent.futures.Future[Any] = self._own.submit(task)
        if isinstance(found, LoweredProgramDef) and found.is_waiting:
            self.hurry(future)
        return future

    def hurry(self, future: concurrent.futures.Future[Any]) -> None:
        """Lets a submitted build overtake others, because a call waits for it."""
        if self._own is not None:
            move_to_front(self._own, future)

    def shutdown(self, wait: bool = True) -> None:
        if self._own is not None:
            self._own.shutdown(wait)


_from_config = runners.from_config
