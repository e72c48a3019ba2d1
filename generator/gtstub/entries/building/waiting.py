"""
Waits for an entry that another process builds, until it is published or this process has claimed its build.

`Waiter.wait` serves all cases: within one process and between processes, with and without ranks. A process never waits
for ever. It polls, at first every few milliseconds, and measures timeouts of other builders with its own clock, because
the clocks of two hosts differ.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub import settings
from gtstub.entries import spans
from gtstub.entries.building import progress
from gtstub.entries.building.progress import News, builds
from gtstub.entries.cache.claims import RENEWAL, BuildClaim, claim_file, claim_files, claiming, read_claim
from gtstub.entries.cache.process import Process, this_process

if TYPE_CHECKING:
    from gtstub.entries.cache.entry import Entry
    from gtstub.entries.cache.store import Cache

SHORTEST_SLEEP, LONGEST_SLEEP = 0.005, 0.25
"""Seconds between two polls."""


@dataclasses.dataclass
class Watch:
    """Observes the claims of one key in the cache at `root`."""

    root: Path
    key: str
    _timeout: float = dataclasses.field(init=False, default_factory=settings.build_timeout)
    _claim: BuildClaim | None = dataclasses.field(init=False, default=None)
    _since: float = dataclasses.field(init=False, default=0.0)

    @property
    def generation(self) -> int:
        """The highest generation at the last poll; 0 if there was no claim."""
        return self._claim.generation if self._claim else 0

    def is_free(self) -> bool:
        """Whether no process holds a claim: there is none, its owner has ended, or its renewal is overdue."""
        # Reads the last known claim first, because listing all claims is more expensive on a parallel file system.
        if self._claim is not None and self._is_held(read_claim(claim_file(self.root, self.key, self.generation))):
            return False
        files = claim_files(self.root, self.key)
        return not self._is_held(read_claim(files[max(files)]) if files else None)

    @property
    def builder(self) -> tuple[Process | None, float]:
        """The process that held the claim at the last poll, and for how many seconds it has done so."""
        return (self._claim.owner, self._claim.renewals * RENEWAL) if self._claim else (None, 0.0)

    def claim(self, held: ExitStack) -> bool:
        """Claims the key until `held` is closed, after all claims of the last poll. False if another was faster."""
        return held.enter_context(claiming(self.root, self.key, self.generation + 1))

    def _is_held(self, claim: BuildClaim | None) -> bool:
        now = time.monotonic()
        if claim != self._claim:
            self._claim, self._since = claim, now
        if claim is None or (claim.owner is not None and claim.owner.has_ended):
            return False
        return now - self._since <= self._timeout


@dataclasses.dataclass
class Waiter:
    """
    Waits for the entry of a key, or for the claim of its build.

    `watches` observe the claims of all steps of its build, the first step first; while one of them is held, another
    process builds. A process whose `turn` is 0 may build as soon as none is held. Turn n comes `n * grace` seconds
    later, and one turn earlier for each builder that gave up. Each poll calls `check`, which may raise an error to end
    the wait. `label` is the program in messages.
    """

    cache: Cache
    key: str
    watches: Sequence[Watch]
    turn: int = 0
    grace: float = 0.0
    check: Callable[[], None] = lambda: None
    label: str = ""

    def __post_init__(self) -> None:
        self._begin = time.monotonic()
        self._deadline = self._begin + self.grace * self.turn
        self._was_free, self._generations = True, 0
        self._known: Process | None = this_process()

    def wait(self, held: ExitStack) -> Entry | None:
        """
        The entry as soon as it is published, or None when this process has claimed the first step of its build. The
        claim is in `held`, which may contain one with an entry, too.
        """
        with spans.span("wait", f"the build of {self.key}"):
            return self._wait(held)

    def _wait(self, held: ExitStack) -> Entry | None:
        while True:
            # Claims come before the entry, because a builder publishes the entry before it releases its claim.
            held_watch = next((watch for watch in self.watches if not watch.is_free()), None)
            is_free = held_watch is None
            if (entry := self.cache.find(self.key)) is not None:
                return entry
            self.check()
            generations = sum(watch.generation for watch in self.watches)
            if is_free and (not self._was_free or generations > self._generations):  # A builder has given up.
                self.turn = max(0, self.turn - 1)
                self._deadline = time.monotonic() + self.grace * self.turn
            self._was_free, self._generations = is_free, max(generations, self._generations)
            if is_free and time.monotonic() >= self._deadline and self.watches[0].claim(held):
                # Another process may have published it since the last poll.
                if (entry := self.cache.find_anew(self.key)) is None:
                    builds.note(News("claimed", self.key))
                return entry
            if held_watch is not None and time.monotonic() - self._begin >= progress.LONG:
                self._name_builder(held_watch)
            # Sleeps grow with the time waited so far: the first polls are frequent.
            time.sleep(min(max(SHORTEST_SLEEP, (time.monotonic() - self._begin) / 20), LONGEST_SLEEP))

    def _name_builder(self, watch: Watch) -> None:
        """Names the other process that builds, once for each."""
        process, seconds = watch.builder
        if process is not None and process != self._known:
            self._known = process
            builds.note(News("waits", self.key, str(process), seconds, self.label))


def build_once(cache: Cache, key: str, build: Callable[[], Entry]) -> Entry:
    """
    Finds the entry of a key, waits while another process or thread builds it, or builds it with `build`. If the builder
    exits or fails, one of the waiting processes takes over the build. Raises the errors of `build`.
    """
    with ExitStack() as held:
        return Waiter(cache, key, [Watch(cache.root, key)]).wait(held) or build()
