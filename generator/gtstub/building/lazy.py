"""Builds that begin when a call first needs them (GTSTUB_LAZY)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class LazyBuild(Future[Any]):
    """The result of a build that `start` begins; `start` runs at most once."""

    def __init__(self, start: Callable[[], Future[Any]]) -> None:
        super().__init__()
        self._start: Callable[[], Future[Any]] | None = start
        self._beginning = threading.Lock()
        self.build: Future[Any] | None = None
        """What `start` has returned; None before."""

    @property
    def is_left(self) -> bool:
        """Whether nothing has needed the build so far."""
        return self._start is not None

    def begin(self) -> None:
        """Begins the build, unless it has begun. Raises the errors of `start`, which are also those of the result."""
        with self._beginning:
            start, self._start = self._start, None
            if start is None:
                return
            try:
                self.build = start()
            except BaseException as error:
                self.set_exception(error)
                raise
        self.build.add_done_callback(self._finish)

    def _finish(self, build: Future[Any]) -> None:
        if (error := build.exception()) is None:
            self.set_result(build.result())
        else:
            self.set_exception(error)


def is_left(build: Future[Any]) -> bool:
    """Whether a build was left for a call that never came."""
    return isinstance(build, LazyBuild) and build.is_left
