"""
Messages about builds: which program is being built, which one is ready, and for which other process this one waits.

All of them go through `builds`. A terminal shows a bar while something waits for a build, and a line for each program
that is ready. Anything else, such as a log file, a notebook or pytest, gets a line on stderr when a build begins and
when it ends. If the logger `gtstub` takes messages of level INFO, it gets these lines instead. GTSTUB_PROGRESS
(`settings.progress`) can leave them out.

Ranks with one code path need the same programs. The first one prints messages about all builds that it waits for, the
others about those that they make themselves. A worker prints none: it sends its news to the process that it works for.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Literal

from gtstub import ranks, settings
from gtstub.entries.cache.entry import Entry
from gtstub.errors import CacheError, reason
from gtstub.util.console import make_bar
from gtstub.util.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONG = 2.0
"""Seconds of waiting for another process before a message names it."""

SHOWN = 3
"""The number of programs that a message lists."""

_log = logging.getLogger("gtstub")


@dataclasses.dataclass(frozen=True)
class News:
    """
    What becomes known about the entry `key` while its build is under way: this process or a worker of it has claimed
    the build, or waits for `builder`, which has been building for some `seconds`.
    """

    kind: Literal["claimed", "waits"]
    key: str
    builder: str = ""
    seconds: float = 0.0
    label: str = ""


@dataclasses.dataclass
class _Build:
    """
    A build that is under way, or `is_queued` until a worker has time for it. If it is not this process that builds,
    `builder` is the process that does, if it is known.
    """

    label: str
    is_own: bool = True
    begin: float = dataclasses.field(default_factory=time.monotonic)
    is_queued: bool = False
    builder: str = ""
    is_printed: bool = False


class Builds:
    """The builds that this process has begun, or waits for, and the messages about them."""

    def __init__(self) -> None:
        self._send: Callable[[News], None] | None = None
        self._forget()

    def _forget(self) -> None:
        """Forgets all builds: those that a forked process finds here belong to its parent."""
        self._lock = threading.RLock()
        self._under_way: dict[Hashable, _Build] = {}
        self._done = 0
        self._watchers = 0
        self._bar: tuple[Progress, TaskID] | None = None

    def send_to(self, send: Callable[[News], None]) -> None:
        """In a worker: passes news on with `send`, and prints nothing here."""
        self._send = send

    # --- What happens -------------------------------------------------------------------------------------------------

    def begin(self, key: Hashable, label: str, *, is_own: bool = True) -> None:
        """
        A build of this process begins, unless it is known; or this process waits for a build if not `is_own`. Raises
        ConfigError for an unknown value of GTSTUB_PROGRESS.
        """
        settings.progress()
        if self._send is not None:
            return
        with self._lock:
            if key not in self._under_way:
                self._under_way[key] = build = _Build(label, is_own)
                self._refresh()
                if _is_first_rank():
                    build.is_printed = True
                    self._print(f"{'building' if is_own else 'waiting for'} {label}", has_ended=False)

    def queue(self, key: Hashable) -> None:
        """A build waits for a worker, until one has claimed it."""
        with self._lock:
            if (build := self._under_way.get(key)) is not None:
                build.is_queued = True
                self._refresh()

    def note(self, news: News) -> None:
        """What has become known about a build."""
        if self._send is not None:
            self._send(news)
            return
        with self._lock:
            build = self._under_way.get(news.key)
            if news.kind == "claimed":
                if build is not None:
                    build.is_own, build.is_queued, build.builder = True, False, ""
                    if not build.is_printed:
                        build.is_printed = True
                        self._print(f"building {build.label}", has_ended=False)
            else:
                if build is None:
                    build = self._under_way[news.key] = _Build(news.label or news.key.rpartition("-")[0])
                build.is_own, build.is_queued, build.builder = False, False, news.builder
                if _is_first_rank():
                    build.is_printed = True
                    since = time.strftime("%H:%M:%S", time.localtime(time.time() - news.seconds))
                    self._print(
                        f"{build.label} waits for {news.builder}, which has been building it since {since}",
                        has_ended=False,
                    )
            self._refresh()

    def end(self, key: Hashable, error: BaseException | None = None, entry: Any = None) -> None:
        """A build has ended, with an error, or with an entry if it is known. Does nothing for an unknown key."""
        with self._lock:
            if (build := self._under_way.pop(key, None)) is None:
                return
            self._done += 1
            if build.is_printed:
                others = f"; under way: {self._listed()}" if self._under_way and self._bar is None else ""
                self._print(f"{_ended(build, error, entry)}{others}", has_ended=True)
            if not self._under_way:
                self._done = 0
            self._refresh()

    def end_with(self, key: Hashable, build: Future[Any]) -> None:
        """Ends a build as soon as a future has ended."""

        def end(done: Future[Any]) -> None:
            error = CancelledError("it was cancelled") if done.cancelled() else done.exception()
            self.end(key, error, None if error else done.result())

        build.add_done_callback(end)

    @contextlib.contextmanager
    def building(self, key: Hashable, label: str) -> Iterator[None]:
        """A build in this thread."""
        with self.shown():
            self.begin(key, label)
            try:
                yield
            except BaseException as error:
                self.end(key, error)
                raise
            self.end(key)

    def follow(self, key: Hashable, build: Future[Any], label: str, *, is_own: bool = False) -> None:
        """A build of which nothing may have been heard so far, and nothing may be heard before its end."""
        if not build.done():
            self.begin(key, label, is_own=is_own)
            self.end_with(key, build)

    # --- What is shown ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Within the block something waits for builds, so a terminal shows those that are under way."""
        with self._lock:
            self._watchers += 1
            self._refresh()
        try:
            yield
        finally:
            with self._lock:
                self._watchers -= 1
                self._refresh()

    def _refresh(self) -> None:
        if self._bar is None and self._watchers > 0 and self._under_way and _is_live():
            bar = make_bar()
            self._bar = bar, bar.add_task("")
            bar.start()
        if self._bar is not None:
            bar, task = self._bar
            if self._watchers <= 0 or not self._under_way:
                self._bar = None
                bar.stop()
            else:
                total = self._done + len(self._under_way)
                bar.update(task, total=total, completed=self._done, description=self._listed(builders=True))

    def _listed(self, *, builders: bool = False) -> str:
        """The builds that are under way, maybe with their builders, and the number of those that are not yet."""
        begun = [each for each in self._under_way.values() if not each.is_queued]
        names = [f"{each.label} (by {each.builder})" if builders and each.builder else each.label for each in begun]
        queued = len(self._under_way) - len(begun)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        parts = f"{', '.join(names[:SHOWN])}{more}", f"{queued} waiting" if queued else ""
        return "; ".join(filter(None, parts))

    def _print(self, text: str, *, has_ended: bool) -> None:
        """Prints a message, except about a build that the bar shows until it `has_ended`."""
        if self._bar is None:
            print_line(text)
        elif has_ended:
            self._bar[0].console.print(f"gtstub: {text}", soft_wrap=True)


builds = Builds()
"""Those of this process."""

os.register_at_fork(after_in_child=builds._forget)


def print_line(text: str) -> None:
    """Writes a line about the progress of builds, as the logger `gtstub` or else on stderr."""
    current = ranks.current()
    rank = f"rank {current.rank}: " if current.size > 1 else ""
    if _is_logged():
        _log.info("%s%s", rank, visible(text))
    elif settings.progress() != settings.Progress.OFF and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # It may be closed.
            # One write, so that lines of threads and processes do not mix.
            sys.stderr.write(f"gtstub: {rank}{visible(text)}\n")
            sys.stderr.flush()


def _ended(build: _Build, error: BaseException | None, entry: Any) -> str:
    if error is not None:
        return f"could not build {build.label}: {reason(error).strip().splitlines()[0]}"
    seconds = time.monotonic() - build.begin
    if not build.is_own:
        by = f": {build.builder} has built it" if build.builder else ""
        return f"{build.label} is ready after {seconds:.1f} s{by}"
    if isinstance(entry, Entry):
        with contextlib.suppress(CacheError):
            seconds = entry.manifest().built.whole  # without the time in which it waited for other builds
    return f"built {build.label} in {seconds:.1f} s"


def _is_first_rank() -> bool:
    """Whether this rank is the first of its code path."""
    return ranks.current().rank == ranks.current().peers[0]


def _is_logged() -> bool:
    return _log.isEnabledFor(logging.INFO) and _log.hasHandlers()


def _is_live() -> bool:
    """
    Whether stderr is a terminal that can show a bar. A notebook is none, although rich takes it for one: there its bar
    needs ipywidgets. Nor is there a bar when the process ends, because it needs a thread.
    """
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    is_alone = ranks.current().size == 1 and not _is_logged() and threading.main_thread().is_alive()
    return is_terminal and is_alone and settings.progress() == settings.Progress.AUTO
