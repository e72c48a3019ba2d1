"""
Waiting for an entry that another process builds, until it is there or it is this process's turn to build it.

All waiting goes through `Waiter.wait`: within one process and between processes, with and without ranks. A process
never waits for ever. It looks again and again, first every few milliseconds, and judges other builders by its own
clock, because the clocks of two hosts differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub import settings
from gtstub.cache.claims import Claim, claim_file, claim_files, claiming, read_claim

if TYPE_CHECKING:
    from gtstub.cache.entry import Entry
    from gtstub.cache.store import Cache

SHORTEST_SLEEP, LONGEST_SLEEP = 0.005, 0.25
"""Seconds between two looks."""


class Watch:
    """Watches the claims of one key."""

    def __init__(self, root: Path, key: str) -> None:
        self._root = root
        self._key = key
        self._timeout = settings.build_timeout()
        self._claim: Claim | None = None
        self._since = 0.0

    @property
    def generation(self) -> int:
        """The highest generation at the last look; 0 if there was no claim."""
        return self._claim.generation if self._claim else 0

    def is_free(self) -> bool:
        """
        Whether no process holds the claim: there is none, its owner has ended, or it was not renewed for too
        long.
        """
        # While the claim seen last is held, it alone is read: listing all claims costs a parallel file system more.
        if self._claim is not None and self._is_held(read_claim(claim_file(self._root, self._key, self.generation))):
            return False
        files = claim_files(self._root, self._key)
        return not self._is_held(read_claim(files[max(files)]) if files else None)

    def _is_held(self, claim: Claim | None) -> bool:
        now = time.monotonic()
        if claim != self._claim:
            self._claim, self._since = claim, now
        if claim is None or (claim.owner is not None and claim.owner.has_ended):
            return False
        return now - self._since <= self._timeout


class Waiter:
    """
    Waits for the entry of a key.

    `watches` are of the claims that lead to the entry: while one of them is held, somebody else is at work. A process
    whose `turn` is 0 may build as soon as none is held; turn n comes `n * grace` seconds later, and one turn earlier
    for each builder that gave up. `check` is called at each look and may raise what ends the wait.
    """

    def __init__(
        self,
        cache: Cache,
        key: str,
        watches: Sequence[Watch],
        *,
        turn: int = 0,
        grace: float = 0.0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._cache = cache
        self._key = key
        self._watches = watches
        self._turn = turn
        self._grace = grace
        self._check = check
        self._begin = time.monotonic()
        self._deadline = self._begin + grace * turn
        self._was_free, self._generations = True, 0

    def wait(self) -> Entry | None:
        """The entry as soon as it is there; None when it is this process's turn to build it."""
        while True:
            # Before the look for the entry, because a builder publishes the entry before it releases the claim.
            is_free = all(watch.is_free() for watch in self._watches)
            if (entry := self._cache.find(self._key)) is not None:
                return entry
            self._check()
            generations = sum(watch.generation for watch in self._watches)
            if is_free and (not self._was_free or generations > self._generations):  # A builder has given up.
                self._turn = max(0, self._turn - 1)
                self._deadline = time.monotonic() + self._grace * self._turn
            self._was_free, self._generations = is_free, max(generations, self._generations)
            if is_free and time.monotonic() >= self._deadline:
                return None
            # The longer the wait has been, the longer the sleep: at first all processes have just started.
            time.sleep(min(max(SHORTEST_SLEEP, (time.monotonic() - self._begin) / 20), LONGEST_SLEEP))


def build_once(cache: Cache, key: str, build: Callable[[], Entry]) -> Entry:
    """
    The entry of a key. It is found, built here by `build`, or waited for while another process or thread builds it; if
    that one exits or fails, one of the waiting processes takes over. Raises what `build` raises.
    """
    watch = Watch(cache.root, key)
    waiter = Waiter(cache, key, [watch])
    while True:
        if (entry := waiter.wait()) is not None:
            return entry
        with claiming(cache.root, key, watch.generation + 1) as is_ours:
            if is_ours:  # The entry may have been published since the last look.
                return cache.find(key) or build()
        time.sleep(SHORTEST_SLEEP)  # A parallel file system may show the claim of another process only later.
