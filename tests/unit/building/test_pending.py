"""Waiting for all programs where there are many ranks: one summary. The end of mode Build."""

from __future__ import annotations

import contextlib
import weakref
from pathlib import Path

import pytest

from gtstub import ranks
from gtstub.entries.cache.entry import Entry
from gtstub.programs import registry
from gtstub.ranks import Ranks


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has compiled nothing."""
    monkeypatch.setattr(registry, "_alive", weakref.WeakSet())
    monkeypatch.setattr(ranks, "_chosen", None)
    monkeypatch.setattr(ranks, "_is_used", False)


@pytest.mark.parametrize(("rank", "expected"), [(0, 1), (1, 0)])
def test_one_summary(
    rank: int, expected: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ranks.use_ranks(Ranks(rank, 2))
    monkeypatch.setenv("GTSTUB_MODE", "Build")
    with pytest.raises(SystemExit):
        registry.wait_for_compilation()
    assert capsys.readouterr().err.count("Nothing to build.") == expected


def test_calls_of_mode_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eleventh one ends the run if nothing was set up in between."""
    monkeypatch.setenv("GTSTUB_MODE", "Build")
    calls: list[int] = []
    call = registry.SettingUp("p", calls.append)
    with contextlib.suppress(SystemExit):
        for number in range(20):
            call(number)
    assert len(calls) == 10


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
