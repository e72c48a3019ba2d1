"""Adds to the timeline of this process what takes time before its programs are called: look-ups, builds and waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from gtstub import settings

_BEGIN = time.time()
"""In seconds since 1970: about when this process began."""

_added: set[str] = set()
"""The keys of entries whose builds are in the timeline."""


class Stage(Protocol):
    """A stage of a build: `BuildStage` of cache/manifest.py."""

    @property
    def name(self) -> str: ...
    @property
    def begin(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def pid(self) -> int: ...


def is_traced() -> bool:
    """Whether this process has a timeline."""
    return bool(os.environ.get(settings.TRACE))


@contextmanager
def span(kind: str, name: str) -> Iterator[None]:
    """Adds the time of a block to the line of this thread, also if it raises."""
    begin = time.monotonic_ns()
    try:
        yield
    finally:
        add(kind, name, begin)


def add(kind: str, name: str, begin: int) -> None:
    """Adds the time from `begin`, in ns of `time.monotonic_ns()`, until now to the line of this thread."""
    if is_traced():
        from gtstub import _host  # Here, because most processes have no timeline.

        _host.add_span(kind, name, None, begin, time.monotonic_ns())


def add_build(key: str, program: str, ended: float, stages: Sequence[Stage]) -> None:
    """
    Adds the stages of a build that `ended` while this process ran, at seconds since 1970. Each process that builds has
    a line, and a second one for stubs, which are compiled beside the rest.
    """
    if not is_traced() or key in _added or ended < _BEGIN:
        return
    from gtstub import _host

    _added.add(key)
    since_1970 = time.time() - time.monotonic()
    for stage in stages:
        begin = max(0.0, stage.begin - since_1970)
        line = f"{'stubs' if stage.name == 'stub' else 'builds'} in process {stage.pid}"
        times = (round(1e9 * begin), round(1e9 * (begin + stage.seconds)))
        _host.add_span("build", f"{program}: {stage.name}", line, *times)
