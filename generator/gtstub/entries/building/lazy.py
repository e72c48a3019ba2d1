"""Futures that end as those of builds do, and builds that begin when a call first needs them (GTSTUB_LAZY)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from gtstub.errors import CacheError


class FollowingBuild(Future[Any]):
    """A future that ends as another one does."""

    def follow(self, build: Future[Any]) -> None:
        build.add_done_callback(self._finish)

    def _finish(self, build: Future[Any]) -> None:
        if (error := build.exception()) is None:
            self.set_result(build.result())
        else:
            self.set_exception(error)


class LazyBuild(FollowingBuild):
    """The result of a build that `start` begins when it is needed."""

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
        """
        Begins the build, unless it has begun. An error of `start` is the error of the result. A CacheError, of a mode
        that does not build, and what is no Exception, such as KeyboardInterrupt, are raised instead, and the next call
        begins the build.
        """
        with self._beginning:
            if self._start is None:
                return
            try:
                self.build = self._start()
            except CacheError:
                raise
            except Exception as error:
                self.set_exception(error)
            self._start = None
        if self.build is not None:
            self.follow(self.build)


def is_left(build: Future[Any]) -> bool:
    """Whether a build was left for a call that never came."""
    return isinstance(build, LazyBuild) and build.is_left
