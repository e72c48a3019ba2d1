"""
Futures of entries that are being built.

Lowering a program often takes longer than compiling it, so a process that does not build does not lower either. The
ranks of a run choose one builder for each key (`Ranks.builder`); the other ranks wait until it has published the entry.
If the builder does not start, because its program differs or because it died, the next rank in turn takes over.
"""

from __future__ import annotations

import concurrent.futures
import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub import settings
from gtstub.entries import spans
from gtstub.entries.building.lazy import LazyBuild
from gtstub.entries.building.progress import builds as shown_builds
from gtstub.entries.building.waiting import Waiter, Watch
from gtstub.entries.building.workers import workers
from gtstub.entries.cache.claims import FAILURES, LOWERING
from gtstub.entries.cache.entry import Entry
from gtstub.entries.trust import make_directory, restrict
from gtstub.errors import CompilationError, reason
from gtstub.ranks import Ranks
from gtstub.util.atomic import replacing
from gtstub.util.regular import read_regular

if TYPE_CHECKING:
    from gtstub.entries.cache.store import Cache

LARGEST_NOTE = 2**20
"""Bytes of the largest note about a failed build that is read."""

PATIENCE = 0.3
"""Seconds of waiting before `wait_for` names builds of which no message was printed so far."""


class PendingEntry(Future[Entry]):
    """An entry that is being built."""

    def __init__(
        self,
        cache: Cache,
        key: str,
        ranks: Ranks,
        submit: Callable[[], Future[Entry]],
        label: str = "",
    ) -> None:
        super().__init__()
        self.key = key
        self.label = label
        shown_builds.end_with(key, self)
        self._submitted = concurrent.futures.Future[Future[Entry]]()
        self._cache, self._ranks, self._submit = cache, ranks, submit
        # Lowering comes before the build and has its own claim, because the build may run in another process, which
        # then claims the key itself.
        self._lowering = Watch(cache.root, key + LOWERING)
        self._building = Watch(cache.root, key)
        self._claim = ExitStack()
        self._old_failure = self._read_failure()

    def begin(self) -> bool:
        """Begins to build, unless another process builds the entry. Raises the errors of lowering."""
        if not (self._lowering.is_free() and self._building.is_free() and self._lowering.claim(self._claim)):
            return False
        self._go_on(self._cache.find_anew(self.key))
        return True

    def _go_on(self, entry: Entry | None) -> None:
        """Ends with an entry that another process has published, or else builds it, with the claim of its lowering."""
        if entry is not None:
            self._claim.close()
            self.set_result(entry)
            return
        try:
            building = self._submit()
        except BaseException as error:
            failure = self._note_failure(error)
            self._claim.close()
            if failure is error:
                raise
            raise failure from error
        self._submitted.set_result(building)
        building.add_done_callback(self._finish)

    def hurry(self) -> None:
        """Lets the build overtake those that were submitted before it, as soon as this process has submitted it."""
        from gtstub.entries.building.workers import workers  # Here, because most processes find what they need.

        self._submitted.add_done_callback(lambda submitted: workers.hurry(submitted.result()))

    def _finish(self, building: Future[Entry]) -> None:
        if (error := building.exception()) is None:
            self.set_result(building.result())
        else:
            self.set_exception(self._note_failure(error))
        self._claim.close()

    def wait(self) -> None:
        """Waits until another process has published the entry, or builds it when it is this rank's turn."""
        try:
            watches, turn = [self._lowering, self._building], self._ranks.turn(self.key)
            grace = settings.builder_grace()
            waiter = Waiter(self._cache, self.key, watches, turn, grace, self._check_failure, self.label)
            self._go_on(waiter.wait(self._claim))
        except BaseException as error:
            self.set_exception(error)

    # --- Failures -----------------------------------------------------------------------------------------------------
    # All ranks of a run would fail in the same way, one after the other. So the first one writes its error to a note,
    # and the waiting ranks raise that error. A process without other ranks neither writes nor reads notes.

    @property
    def _note(self) -> Path:
        return self._cache.root / FAILURES / self.key

    def _read_failure(self) -> dict[str, str] | None:
        with suppress(OSError, ValueError, RecursionError):
            if self._ranks.size > 1:
                note = json.loads(read_regular(self._note, LARGEST_NOTE))
                if isinstance(note, dict) and isinstance(note.get("text"), str):
                    return note
        return None

    def _check_failure(self) -> None:
        failure = self._read_failure()
        if failure is not None and failure != self._old_failure:
            raise CompilationError(failure["text"])

    def _note_failure(self, error: BaseException) -> BaseException:
        """Writes an error to the note for the other ranks; returns the error to raise on this rank."""
        if self._ranks.size == 1:
            return error
        text = f"Rank {self._ranks.rank} could not build '{self.key}': {reason(error)}"
        note = {"text": text, "id": uuid.uuid4().hex}  # The id distinguishes it from an earlier failure.
        with suppress(OSError):  # Without a note, the other ranks take over the build and fail themselves.
            make_directory(self._note.parent, exist_ok=True)
            with replacing(self._note) as aside:
                aside.write_text(json.dumps(note), encoding="utf-8")
                restrict(aside)
        failure = CompilationError(text)
        failure.__cause__ = error
        return failure


def start(
    cache: Cache,
    key: str,
    ranks: Ranks,
    submit: Callable[[], Future[Entry]],
    label: str = "",
) -> PendingEntry:
    """
    Starts to build an entry that `cache` lacks, on the rank whose turn it is. Does not wait. `label` is the program in
    messages.

    `submit` begins the build and returns its future. If this process is the builder, `start` calls it at once and
    raises the errors of lowering. Otherwise a thread calls it when it is this rank's turn, or never.
    """
    build = PendingEntry(cache, key, ranks, submit, label)
    if ranks.turn(key) != 0 or not build.begin():
        threading.Thread(target=build.wait, name=f"gtstub waits for {key}", daemon=True).start()
    return build


# --- Several builds ---------------------------------------------------------------------------------------------------


def done(result: Any) -> Future[Any]:
    """A future that already has its result."""
    build: Future[Any] = Future()
    build.set_result(result)
    return build


def hurry(build: Future[Any]) -> None:
    """Begins a build that was left for a call, and lets it overtake others, because a call waits for it."""
    if isinstance(build, LazyBuild):
        build.begin()
        build = build.build or build
    if isinstance(build, PendingEntry):
        build.hurry()


def wait_for(builds: Mapping[Future[Any], str]) -> None:
    """Waits for builds, given with the names of their programs, and shows their progress."""
    if all(build.done() for build in builds):
        return
    with spans.span("wait", f"builds of {', '.join(dict.fromkeys(builds.values()))}"), workers.shown():
        _, pending = concurrent.futures.wait(builds, timeout=PATIENCE)
        for build in pending:
            begun = build.build or build if isinstance(build, LazyBuild) else build
            if isinstance(begun, PendingEntry):
                shown_builds.follow(begun.key, begun, begun.label or builds[build])
            else:
                shown_builds.follow(begun, begun, builds[build])
        concurrent.futures.wait(pending)


def raise_all(message: str, errors: Sequence[Exception]) -> None:
    """Raises the one error, or an ExceptionGroup of several; returns without errors."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(message, errors)
