"""
Waiting for another process to build an entry, instead of building it too.

Lowering a program takes longer than most compilers, so who does not build does not lower either. The ranks of a run
elect a builder for each key (`Ranks.builder`); the rest wait for what it publishes. They never wait for ever: a builder
that does not come, because its program differs or because it died, is replaced by the next rank in turn.
"""

from __future__ import annotations

import concurrent.futures
import json
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path

from gtstub.cache import claims
from gtstub.cache.cleanup import FAILURES
from gtstub.cache.store import Cache, StubArtifact
from gtstub.environment import seconds
from gtstub.errors import CompilationError, RanksError
from gtstub.ranks import Ranks

GRACE = "GTSTUB_BUILDER_GRACE"
"""Seconds that the builder of a key has until it must have claimed it; 5 where this is not set."""


class Build(Future[StubArtifact]):
    """
    An entry in the making. `is_elsewhere`: its builder's cache is one that this rank does not see, and it is brought by
    `Ranks.exchange`.
    """

    def __init__(self, cache: Cache, key: str, ranks: Ranks, submit: Callable[[], Future[StubArtifact]]) -> None:
        super().__init__()
        self.key = key
        self.is_elsewhere = not ranks.shares_with(ranks.builder(key))
        self._cache, self._ranks, self._submit = cache, ranks, submit
        # Lowering comes before the build, and has a claim of its own: the build, which may run in another process,
        # claims the key by itself.
        self._lowering = claims.Watch(cache, key + claims.LOWERING)
        self._building = claims.Watch(cache, key)
        self._claims = ExitStack()
        self._old_failure = self._failure()

    @property
    def _is_free(self) -> bool:
        return self._lowering.is_free() and self._building.is_free()

    def begin(self) -> bool:
        """Builds here, unless another process does. Raises what lowering raises."""
        if not self._is_free:
            return False
        attempt = claims.attempt(self._cache.root, self.key + claims.LOWERING, self._lowering.generation + 1)
        if not self._claims.enter_context(attempt):
            return False
        try:
            building = self._submit()
        except BaseException as error:
            failure = self._failed(error)
            self._claims.close()
            if failure is error:
                raise
            raise failure from error
        building.add_done_callback(self._take)
        return True

    def _take(self, building: Future[StubArtifact]) -> None:
        if (error := building.exception()) is None:
            self.set_result(building.result())
        else:
            self.set_exception(self._failed(error))
        self._claims.close()

    def build(self) -> None:
        """Builds here and now, whosever turn it is, unless another process does; waits for it."""
        try:
            if not self.begin():
                self._wait()
        except BaseException as error:
            self.set_exception(error)
        concurrent.futures.wait([self])

    def wait(self) -> None:
        """Waits until the entry is there, or until it is this rank's turn to build it."""
        try:
            self._wait()
        except BaseException as error:
            self.set_exception(error)

    def _wait(self) -> None:
        grace, turn = seconds(GRACE, 5, RanksError, or_none=True), self._ranks.turn(self.key)
        begin = time.monotonic()
        deadline = begin + grace * turn
        was_free, generations_seen = True, 0
        while True:
            is_free = self._is_free  # before the look for the entry, which is published first
            if (artifact := self._cache.find(self.key)) is not None:
                self.set_result(artifact)
                return
            if (failure := self._failure()) is not None and failure != self._old_failure:
                raise CompilationError(failure["text"])
            generations = self._lowering.generation + self._building.generation
            if is_free and (not was_free or generations > generations_seen):  # Its builder is gone.
                turn = max(0, turn - 1)
                deadline = time.monotonic() + grace * turn
            was_free, generations_seen = is_free, max(generations, generations_seen)
            if is_free and time.monotonic() >= deadline and self.begin():
                return
            claims.pause(begin)

    # --- Failures ----------------------------------------------------------------------------------------------------
    # The ranks of a run would all fail alike, one after the other: who waits is told instead. A process that is alone
    # tries for itself.

    def _failure(self) -> dict[str, str] | None:
        if self._ranks.size == 1:
            return None
        try:
            note: dict[str, str] = json.loads(self._note.read_bytes())
        except (OSError, ValueError):
            return None
        return note

    def _failed(self, error: BaseException) -> BaseException:
        """The error as it is raised here and told to those that wait."""
        if self._ranks.size == 1:
            return error
        text = f"Rank {self._ranks.rank} could not build '{self.key}': {error}"
        note = {"text": text, "id": uuid.uuid4().hex}  # which tells this failure from the same one yesterday
        with suppress(OSError):  # Unwritten, the others take over, and fail by themselves.
            self._note.parent.mkdir(parents=True, exist_ok=True)
            aside = self._note.with_name(f"{self._note.name}.{note['id']}")
            aside.write_text(json.dumps(note), encoding="utf-8")
            aside.replace(self._note)
        failure = CompilationError(text)
        failure.__cause__ = error
        return failure

    @property
    def _note(self) -> Path:
        return self._cache.root / FAILURES / self.key


def start(cache: Cache, key: str, ranks: Ranks, submit: Callable[[], Future[StubArtifact]]) -> Build:
    """
    Has the entry of a key built, which `cache` does not have, by whoever it is up to; does not wait for it.

    `submit` begins to build, and returns the build's future. It is called here where this process is the one to build,
    and raises then what lowering raises; else later, in a thread, or never.
    """
    build = Build(cache, key, ranks, submit)
    if build.is_elsewhere:
        return build
    if ranks.turn(key) != 0 or not build.begin():
        threading.Thread(target=build.wait, name=f"gtstub waits for {key}", daemon=True).start()
    return build
