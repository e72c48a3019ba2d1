"""Waiting for all programs where there are many ranks: one exchange, one summary."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path

import pytest

from gtstub import ranks
from gtstub.entries.building.pending import PendingEntry, wait_for
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.store import Cache
from gtstub.errors import CompilationError
from gtstub.programs import registry
from gtstub.ranks import Ranks


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has compiled nothing."""
    monkeypatch.setattr(registry, "_alive", weakref.WeakSet())
    monkeypatch.setattr(ranks, "_chosen", None)
    monkeypatch.setattr(ranks, "_is_used", False)


def wait_in(mode: str, rank: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many exchanges there were; all ranks must have as many, or they wait for each other."""
    exchanges: list[Collection[PendingEntry]] = []
    ranks.use_ranks(Ranks(rank, 2, exchange=exchanges.append))
    monkeypatch.setenv("GTSTUB_MODE", mode)
    with contextlib.suppress(SystemExit):  # the end of mode Build
        registry.wait_for_compilation()
    return len(exchanges)


@pytest.mark.parametrize("mode", ["Build", "BuildAndRun", "Run"])
def test_one_exchange(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait_in(mode, 0, monkeypatch) == 1


@pytest.mark.parametrize(("rank", "expected"), [(0, 1), (1, 0)])
def test_one_summary(
    rank: int, expected: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_in("Build", rank, monkeypatch)
    assert capsys.readouterr().err.count("Nothing to build.") == expected


@pytest.mark.parametrize(("exchanges", "expected"), [(False, 10), (True, 0)])
def test_calls_of_mode_build(exchanges: bool, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The eleventh one ends the run if nothing was set up in between; where all ranks must end together, the first."""
    ranks.use_ranks(Ranks(0, 2, exchange=(lambda _: None) if exchanges else None))
    monkeypatch.setenv("GTSTUB_MODE", "Build")
    calls: list[int] = []
    call = registry.SettingUp("p", calls.append)
    with contextlib.suppress(SystemExit):
        for number in range(20):
            call(number)
    assert len(calls) == expected


def test_calls_of_mode_build_go_on_while_something_is_set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "_others", {})
    monkeypatch.setattr(registry, "_end_at_exit", lambda: None)
    calls: list[int] = []
    call = registry.SettingUp("p", calls.append)
    for number in range(20):
        registry.add_entry(Entry(tmp_path / f"p-{number // 10}"))
        call(number)
    assert len(calls) == 20
    monkeypatch.setattr(registry, "_others", {})  # no entries, of which there would be a summary
    for number in range(10):
        call(number)
    with pytest.raises(SystemExit):
        call(10)


def test_build_elsewhere_is_not_waited_for(tmp_path: Path) -> None:
    def submit() -> Future[Entry]:
        raise AssertionError

    builder = Ranks(0, 2).builder("prog-0123")
    other = 1 - builder
    build = PendingEntry(Cache(tmp_path), "prog-0123", Ranks(other, 2, sharing=frozenset({other})), submit)
    with pytest.raises(CompilationError) as caught:
        wait_for({build: "prog"})
    assert str(caught.value) == (
        "Program 'prog' is built in a cache that this rank cannot see: call 'gtstub.wait_for_compilation()' on all"
        " ranks first."
    )
