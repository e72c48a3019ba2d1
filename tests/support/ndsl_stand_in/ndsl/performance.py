"""Stand-in for ndsl.performance.collector; see the package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Timer:
    def __init__(self) -> None:
        self.clocked: list[str] = []

    @contextlib.contextmanager
    def clock(self, name: str) -> Iterator[None]:
        self.clocked.append(name)
        yield


class PerformanceCollector:
    def __init__(self) -> None:
        self.timestep_timer = Timer()
        self.collected = 0

    def collect_performance(self) -> None:
        self.collected += 1


class NullPerformanceCollector(PerformanceCollector):
    pass
