"""
gt4py's runner of compilation jobs, asked only where something is to be compiled.

gt4py hands every program to worker processes, also one that is in the cache; each takes seconds to start.
"""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any

from gt4py.next.otf import runners

from gtstub.building.pending import done
from gtstub.frameworks.gt4py.internals import replace_default_runner
from gtstub.frameworks.gt4py.stages import FoundProgramDef


class FindingRunner:
    """Answers at once where the lowering found an entry; else gt4py's own runner does, made when it is needed."""

    def __init__(self, own: runners.Runner | None = None) -> None:
        self._own = own
        self._making = threading.Lock()

    def submit(self, task: runners.CompilationTask) -> concurrent.futures.Future[Any]:
        found = task.construct_compilable(False)
        if isinstance(found, FoundProgramDef):
            return done(found.entry)
        with self._making:
            if self._own is None:
                self._own = _from_config()
        future: concurrent.futures.Future[Any] = self._own.submit(task)
        return future

    def shutdown(self, wait: bool = True) -> None:
        if self._own is not None:
            self._own.shutdown(wait)


_from_config = runners.from_config


def install() -> None:
    """Makes it gt4py's default runner, now and whenever gt4py makes a new one."""
    replace_default_runner(FindingRunner)
