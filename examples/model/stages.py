"""The stages of a run: their seconds, and a line on the terminal when one begins."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

from rich.console import Console


class Stages:
    """`seconds` are those of the stages that have ended, in their order."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begin = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Prints a line with the seconds since the run began."""
        self._console.print(f"[{time.perf_counter() - self._begin:7.1f} s] {text}", soft_wrap=True, markup=False)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.say(name)
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin


class Announcements(logging.Handler):
    """Prints what icon4py's driver says that it sets up."""

    def __init__(self, stages: Stages) -> None:
        super().__init__(logging.INFO)
        self._stages = stages

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith(("initializing ", "creating ")):
            self._stages.say(f"  {text}")
