"""
Who builds an entry: one process, without locks, which parallel file systems promise and do not keep.

A claim is a file '<root>/.claims/<key>.<generation>', made by the one process that finds it missing; the highest
generation builds. A claim whose process is gone is not removed but overtaken by one generation more, so nobody takes
away the claim of another by mistake. Where two build all the same, `Cache.publish` lets both of them succeed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.cache.process import Owner, this_process
from gtstub.environment import seconds
from gtstub.errors import CacheError, unwritable

if TYPE_CHECKING:
    from gtstub.cache.store import Cache, StubArtifact

DIRECTORY = ".claims"

LOWERING = ".lowering"
"""What is appended to a key for the claim of who lowers the program, before it is built."""

TIMEOUT = "GTSTUB_BUILD_TIMEOUT"
"""Seconds without a sign of life after which a builder that this process cannot see is taken for dead; 60."""

HEARTBEAT = 1.0
"""Seconds from one sign of life of a builder to the next."""

SHORTEST_SLEEP, LONGEST_SLEEP = 0.005, 0.25
"""Seconds between two looks of a process that waits."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim as it was read: its builder (None where it is just being written), and its heartbeat."""

    generation: int
    owner: Owner | None
    beat: int


def build_once(cache: Cache, key: str, build: Callable[[], StubArtifact]) -> StubArtifact:
    """
    The entry of a key: it is found, or built here by `build`, or waited for where another process or thread builds it.
    Whose builder is gone, or could not build it, is built by one of those who wait. Raises what `build` raises.
    """
    watch = Watch(cache, key)
    while True:
        if (artifact := watch.wait()) is not None:
            return artifact
        with attempt(cache.root, key, watch.generation + 1) as is_ours:
            if is_ours:  # It may have been published between the look and the claim.
                return cache.find(key) or build()
        time.sleep(SHORTEST_SLEEP)  # A parallel file system may show the claim of another one only after a while.


class Watch:
    """Watches who builds an entry, by this process's own clock: those of two hosts differ."""

    def __init__(self, cache: Cache, key: str) -> None:
        self._cache = cache
        self._key = key
        self._timeout = seconds(TIMEOUT, 60, CacheError)
        self._claim: Claim | None = None
        self._since = 0.0

    @property
    def generation(self) -> int:
        """The highest one that was seen at the last look; 0 where there was none."""
        return self._claim.generation if self._claim else 0

    def wait(self) -> StubArtifact | None:
        """Waits for the entry, without spinning; None where nobody builds it any more."""
        begin = time.monotonic()
        while True:
            is_free = self.is_free()  # Before the look for the entry: a builder publishes first and releases then.
            if (artifact := self._cache.find(self._key)) is not None:
                return artifact
            if is_free:
                return None
            pause(begin)

    def is_free(self) -> bool:
        """Whether nobody builds the entry, or who did is gone, or has given no sign of life for too long."""
        # While its builder lives a claim is the one to wait for. To list them all costs a parallel file system more.
        if self._claim is not None and self._is_alive(read_claim(_file(self._cache.root, self._key, self.generation))):
            return False
        generations = _generations(self._cache.root, self._key)
        return not self._is_alive(read_claim(generations[max(generations)]) if generations else None)

    def _is_alive(self, claim: Claim | None) -> bool:
        """Whether a claim, as it was read just now, is that of a builder that lives."""
        now = time.monotonic()
        if claim != self._claim:
            self._claim, self._since = claim, now
        if claim is None or (claim.owner is not None and claim.owner.is_gone):
            return False
        return now - self._since <= self._timeout


def pause(begin: float) -> None:
    """Sleeps between two looks, the longer the longer the wait has been: at first everybody has just started."""
    time.sleep(min(max(SHORTEST_SLEEP, (time.monotonic() - begin) / 20), LONGEST_SLEEP))


def _file(root: Path, key: str, generation: int) -> Path:
    return root / DIRECTORY / f"{key}.{generation}"


def _generations(root: Path, key: str) -> dict[int, Path]:
    """The claims of a key by their generations."""
    found = {}
    with suppress(OSError):
        for file in (root / DIRECTORY).iterdir():
            name, _, generation = file.name.rpartition(".")
            if name == key and generation.isdigit():
                found[int(generation)] = file
    return found


def read_claim(file: Path) -> Claim | None:
    """A claim; None where it is released."""
    generation = int(file.suffix[1:])
    try:
        document = json.loads(file.read_bytes())
        return Claim(generation, Owner(**document["owner"]), document["beat"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        return Claim(generation, None, 0)


# --- Claiming ---------------------------------------------------------------------------------------------------------


@contextmanager
def attempt(root: Path, key: str, generation: int) -> Iterator[bool]:
    """Whether this thread has the claim, as long as it is in here; False where another one was faster."""
    file = _file(root, key, generation)
    owner = this_process()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(file.parent, error) from error
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        yield False
        return
    except OSError as error:
        raise unwritable(file, error) from error
    try:
        _write(descriptor, owner, 0)
    except OSError as error:
        _release(root, key, generation, descriptor)
        raise unwritable(file, error) from error
    released = threading.Event()
    heart = threading.Thread(target=_beat, args=(descriptor, owner, released), daemon=True)
    heart.start()
    try:
        yield True
    finally:
        if os.getpid() == owner.pid:  # Else this is a fork of the builder, which goes on building.
            released.set()
            heart.join()
            _release(root, key, generation, descriptor)


def _beat(descriptor: int, owner: Owner, released: threading.Event) -> None:
    beat = 0
    while not released.wait(HEARTBEAT):
        beat += 1
        with suppress(OSError):  # Who hears nothing overtakes; that costs a second build, and nothing else.
            _write(descriptor, owner, beat)


def _write(descriptor: int, owner: Owner, beat: int) -> None:
    os.pwrite(descriptor, json.dumps({"owner": dataclasses.asdict(owner), "beat": beat}).encode(), 0)


def _release(root: Path, key: str, generation: int, descriptor: int) -> None:
    """Removes a claim, and those that it has overtaken; last its own, so that none of the others counts again."""
    file = _file(root, key, generation)
    with suppress(OSError):
        is_ours = os.path.samestat(os.fstat(descriptor), file.stat())  # Else somebody overtook it, and has ended.
        if is_ours:
            for older, overtaken in sorted(_generations(root, key).items()):
                if older < generation:
                    overtaken.unlink(missing_ok=True)
            file.unlink()
    with suppress(OSError):  # What a network file system finds out only now: a claim that is gone needs it no more.
        os.close(descriptor)
