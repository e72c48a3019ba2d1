"""Waiting for the builder of an entry: who does not build does nothing else either, and nobody waits for ever."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gtstub.entries.building import pending, waiting
from gtstub.entries.cache import claims
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.entries.trust import MARKER
from gtstub.errors import CompilationError, ConfigError
from gtstub.ranks import Ranks
from tests.support.signatures import SMALL_SDFG

KEY = "prog-0123"
ALONE = Ranks()
BUILDER = Ranks(0, 5).builder(KEY)
PATIENCE = 60  # seconds that nothing here takes


def rank_of_turn(turn: int) -> Ranks:
    return next(ranks for ranks in (Ranks(rank, 5) for rank in range(5)) if ranks.turn(KEY) == turn)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


class Submitter:
    """Builds in a thread, once `go` is set, and counts its builds."""

    def __init__(self, cache: Cache, libraries: Path) -> None:
        self.cache, self.libraries = cache, libraries
        self.threads: list[int] = []
        self.go = threading.Event()
        self.go.set()
        self.error: Exception | None = None
        self._pool = ThreadPoolExecutor(1)

    def __call__(self) -> Future[Entry]:
        self.threads.append(threading.get_ident())
        return self._pool.submit(waiting.build_once, self.cache, KEY, self._build)

    def _build(self) -> Entry:
        assert self.go.wait(PATIENCE)
        if self.error:
            raise self.error
        with self.cache.private_directory(KEY) as private:
            entry = private / "entry"
            entry.mkdir()
            for file in self.libraries.iterdir():
                (entry / file.name).write_bytes(file.read_bytes())
            return self.cache.publish(entry, KEY, Manifest("prog", "prog_stub.so", SMALL_SDFG.library))


@pytest.fixture
def submit(cache: Cache, libraries: Path) -> Submitter:
    return Submitter(cache, libraries)


@pytest.fixture
def other(cache: Cache, libraries: Path) -> Submitter:
    return Submitter(cache, libraries)


def grace(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setenv("GTSTUB_BUILDER_GRACE", str(seconds))


@contextmanager
def claimed_by_another_process(cache: Cache, key: str) -> Iterator[Callable[[], None]]:
    """While another process claims a key; calls of what it gives kill it."""
    code = """if True:
        import sys
        from pathlib import Path
        from gtstub.entries.cache.claims import claiming
        with claiming(Path(sys.argv[1]), sys.argv[2], 1) as is_ours:
            print(is_ours, flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", code, str(cache.root), key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        try:
            yield lambda: (process.kill(), process.wait())[0]
        finally:
            process.kill()


def test_alone_builds_at_once_in_the_calling_thread(cache: Cache, submit: Submitter) -> None:
    build = pending.start(cache, KEY, ALONE, submit)
    assert build.result(PATIENCE) == cache.find(KEY)
    assert submit.threads == [threading.get_ident()]


def test_builder_builds_at_once_in_the_calling_thread(cache: Cache, submit: Submitter) -> None:
    pending.start(cache, KEY, Ranks(BUILDER, 5), submit).result(PATIENCE)
    assert submit.threads == [threading.get_ident()]


def test_others_wait_and_do_nothing(
    cache: Cache, submit: Submitter, other: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace(monkeypatch, 0)  # It counts until there is a claim, which the builder makes before it lowers.
    submit.go.clear()
    builds = [pending.start(cache, KEY, Ranks(BUILDER, 5), submit)]
    builds += [pending.start(cache, KEY, Ranks(rank, 5), other) for rank in range(5) if rank != BUILDER]
    assert not any(build.done() for build in builds)
    submit.go.set()
    assert {build.result(PATIENCE) for build in builds} == {cache.find(KEY)}
    assert other.threads == []


@pytest.mark.parametrize("key", [KEY, f"{KEY}.lowering"])
@pytest.mark.parametrize("ranks", [ALONE, rank_of_turn(0), rank_of_turn(2)])
def test_another_process_is_waited_for(
    cache: Cache, submit: Submitter, other: Submitter, key: str, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace(monkeypatch, 0)
    with claimed_by_another_process(cache, key):
        build = pending.start(cache, KEY, ranks, submit)
        other._build()
        assert build.result(PATIENCE) == cache.find(KEY)
    assert submit.threads == []


@pytest.mark.parametrize("key", [KEY, f"{KEY}.lowering"])
@pytest.mark.parametrize("ranks", [ALONE, rank_of_turn(1)])
def test_who_is_next_takes_over_from_the_dead(
    cache: Cache, submit: Submitter, key: str, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace(monkeypatch, 2 * PATIENCE)  # Death is seen; it need not be waited for.
    with claimed_by_another_process(cache, key) as kill:
        build = pending.start(cache, KEY, ranks, submit)
        assert submit.threads == []
        threading.Timer(0.3, kill).start()  # when it waits
        build.result(PATIENCE)
    assert len(submit.threads) == 1
    assert submit.threads != [threading.get_ident()]


@pytest.mark.parametrize("key", [KEY, f"{KEY}.lowering"])
def test_who_is_next_takes_over_from_who_was_dead_before(
    cache: Cache, submit: Submitter, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace(monkeypatch, 2 * PATIENCE)
    with claimed_by_another_process(cache, key) as kill:
        kill()
    pending.start(cache, KEY, rank_of_turn(1), submit).result(PATIENCE)
    assert len(submit.threads) == 1


def test_builder_that_gives_no_sign_of_life_is_replaced(
    cache: Cache, submit: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", "0.3")
    directory = cache.root / claims.DIRECTORY
    directory.mkdir(parents=True)
    for key in (KEY, f"{KEY}.lowering"):
        (directory / f"{key}.1").touch()  # by whom, was never written
    pending.start(cache, KEY, rank_of_turn(1), submit).result(PATIENCE)
    assert len(submit.threads) == 1


def test_builder_that_never_comes_is_replaced(cache: Cache, submit: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    grace(monkeypatch, 0.05)
    pending.start(cache, KEY, rank_of_turn(3), submit).result(PATIENCE)
    assert len(submit.threads) == 1


def test_failure_is_everybodys(
    cache: Cache, submit: Submitter, other: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace(monkeypatch, 2 * PATIENCE)
    submit.error = ZeroDivisionError("no such thing")
    submit.go.clear()
    first = pending.start(cache, KEY, Ranks(BUILDER, 5), submit)
    rest = [pending.start(cache, KEY, Ranks(rank, 5), other) for rank in range(5) if rank != BUILDER]
    submit.go.set()
    for build in (first, *rest):
        error = build.exception(PATIENCE)
        assert isinstance(error, CompilationError)
        assert str(error) == f"Rank {BUILDER} could not build '{KEY}': no such thing"
    assert other.threads == []


def test_failure_of_before_is_forgotten(cache: Cache, submit: Submitter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Future[Entry]:
        raise ZeroDivisionError("no such thing")

    with pytest.raises(CompilationError) as caught:
        pending.start(cache, KEY, Ranks(BUILDER, 5), fail)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert waiting.Watch(cache.root, f"{KEY}.lowering").is_free()
    grace(monkeypatch, 0.05)
    pending.start(cache, KEY, rank_of_turn(1), submit).result(PATIENCE)


def test_nothing_is_left_of_claims(cache: Cache, submit: Submitter) -> None:
    build = pending.start(cache, KEY, ALONE, submit)
    build.result(PATIENCE)
    submit._pool.shutdown()
    assert list((cache.root / claims.DIRECTORY).iterdir()) == []
    assert sorted(path.name for path in cache.root.iterdir()) == [".claims", MARKER, KEY]


def test_builder_with_another_cache_is_not_waited_for(cache: Cache, submit: Submitter) -> None:
    rank = (BUILDER + 1) % 5
    build = pending.start(cache, KEY, Ranks(rank, 5, sharing=frozenset({rank})), submit)
    assert submit.threads == [threading.get_ident()]
    build.result(PATIENCE)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_malformed_grace(cache: Cache, submit: Submitter, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_BUILDER_GRACE", text)
    with pytest.raises(ConfigError) as caught:
        pending.start(cache, KEY, rank_of_turn(1), submit).result(PATIENCE)
    assert str(caught.value) == f"GTSTUB_BUILDER_GRACE must be a number of seconds, but is '{text}'."
