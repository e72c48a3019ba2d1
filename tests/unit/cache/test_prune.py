"""What is taken out of a cache: what killed builders left, and entries that were not used for long."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache.cleanup import LONGEST_BUILD, leftovers, set_aside, sweep
from gtstub.entries.cache.entry import USE_KNOWN, Entry
from gtstub.entries.cache.inventory import code_paths, inventory
from gtstub.entries.cache.key import make_key as key_of
from gtstub.entries.cache.process import Process, this_process
from gtstub.entries.cache.prune import LIMITED, limit_size, remove, unwanted
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain.machine import BUILD_CACHES, BYTE_CODE
from gtstub.entries.trust import MARKER
from tests.support.entries import LIBRARY, flip_a_bit, publish, publish_made_of

DAY = 86400


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def publish_used(cache: Cache, key: str, days_ago: float) -> Path:
    path = publish(cache, key).path
    used = time.time() - days_ago * DAY
    os.utime(path, (used, used))
    return path


def keys(cache: Cache, older_than: float | None = None, max_size: float | None = None) -> list[str]:
    return [item.key for item in unwanted(inventory(cache), older_than, max_size)]


# --- Leftovers --------------------------------------------------------------------------------------------------------


def start_building(root: Path) -> tuple[subprocess.Popen[str], Path]:
    code = """if True:
        import sys, time
        from pathlib import Path
        from gtstub.entries.cache.store import Cache
        from gtstub.entries.building.waiting import build_once
        cache = Cache(Path(sys.argv[1]))
        def build():
            with cache.private_directory("prog-01") as path:
                print(path, flush=True)
                time.sleep(1000)
        build_once(cache, "prog-01", build)
    """
    process = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_builder_left_goes_away_with_the_next_build(cache: Cache) -> None:
    process, path = start_building(cache.root)
    publish(cache, "prog-02")
    assert path.exists(), "Its builder is alive."
    process.send_signal(signal.SIGKILL)
    process.communicate()
    publish(cache, "prog-03")
    assert sorted(path.name for path in cache.root.iterdir()) == [".claims", MARKER, "prog-02", "prog-03"]
    assert claims(cache) == ["prog-01.1"], "Who takes over, and they alone, may remove it."
    build_once(cache, "prog-01", lambda: publish(cache, "prog-01"))
    assert claims(cache) == []


def claims(cache: Cache) -> list[str]:
    return sorted(path.name for path in (cache.root / ".claims").iterdir())


def write_claim(cache: Cache, name: str, owner: Process) -> Path:
    path = cache.root / ".claims" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"owner": dataclasses.asdict(owner), "renewals": 0}))
    return path


def test_claims_of_the_dead_go_away_where_the_entry_is_there(cache: Cache) -> None:
    publish(cache, "prog-01")
    ours = this_process()
    dead = dataclasses.replace(ours, start=ours.start - 1)
    for name in ("prog-01.1", "prog-01.lowering.2", "prog-02.1", "prog-02.lowering.1"):
        write_claim(cache, name, dead)
    write_claim(cache, "prog-01.3", ours)
    sweep(cache.root)
    assert claims(cache) == ["prog-01.3", "prog-02.1", "prog-02.lowering.1"]
    for path in (cache.root / ".claims").iterdir():
        os.utime(path, (time.time() - 2 * DAY,) * 2)
    sweep(cache.root)
    assert claims(cache) == ["prog-01.3"]


def test_claim_that_is_made_again_while_others_are_removed_stays(cache: Cache) -> None:
    publish(cache, "prog-01")
    ours = this_process()
    dead = dataclasses.replace(ours, start=ours.start - 1)
    paths = {write_claim(cache, f"prog-01.{generation}", dead) for generation in range(1, 4)}
    removed = []

    def make_again(event: str, args: tuple[object, ...]) -> None:
        if event == "os.remove" and (gone := Path(str(args[0]))) in paths:
            removed.append(gone)
            for path in paths.difference(removed):
                write_claim(cache, path.name, ours)

    sys.addaudithook(make_again)
    sweep(cache.root)
    assert len(removed) == 1
    assert len(claims(cache)) == 2


def test_whole_entry_that_a_killed_process_had_set_aside_is_put_back(cache: Cache) -> None:
    process, path = start_building(cache.root)
    set_aside(publish(cache, "prog-02").path, path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    sweep(cache.root)
    assert cache.find("prog-02") is not None
    assert sorted(path.name for path in cache.root.iterdir()) == [".claims", MARKER, "prog-02"]


def test_what_is_of_another_host_stays_for_a_day(cache: Cache) -> None:
    building = cache.root / ".building-prog-01-00000000.1.1-01234567"
    (building / "entry").mkdir(parents=True)
    claim = cache.root / ".claims" / "prog-01.1"
    claim.parent.mkdir()
    owner = dataclasses.asdict(Process("nid001234", "another boot", 1, 1))
    claim.write_text(json.dumps({"owner": owner, "renewals": 0}))
    failed = cache.root / "failed" / "prog-0123"
    failed.mkdir(parents=True)
    failure = cache.root / ".failures" / "prog-0123"  # as a rank wrote it
    failure.parent.mkdir()
    failure.touch()
    everything = {building, claim, failed, failure}

    def age(path: Path, seconds: float) -> None:
        os.utime(path, (time.time() - seconds,) * 2)

    for path in everything:
        age(path, LONGEST_BUILD - 60)
    sweep(cache.root)
    assert {path for path in everything if path.exists()} == everything
    for path in everything:
        age(path, -10 * LONGEST_BUILD)  # The clock went backwards.
    sweep(cache.root)
    assert {path for path in everything if path.exists()} == everything
    for path in everything:
        age(path, LONGEST_BUILD + 60)
    sweep(cache.root)
    assert {path for path in everything if path.exists()} == {failed}
    age(failed, 22 * DAY)
    sweep(cache.root)
    assert not failed.exists()


@pytest.mark.parametrize("directory", [BUILD_CACHES, BYTE_CODE])
def test_of_what_builds_share_the_most_recently_used_stays(cache: Cache, directory: str) -> None:
    hours = (0, 0.5, 0.9, 2, 3, 4, 30 * 24, -2)  # since the last use; the clock went backwards after the last one

    def make(hours: float) -> Path:
        path = cache.root / directory / f"{hours}"
        (path / "dace_build_cache_user" / "pch").mkdir(parents=True)
        os.utime(path, (time.time() - hours * 3600,) * 2)
        return path

    paths = {each: make(each) for each in hours}
    assert set(leftovers(cache.root)) == {paths[2], paths[3], paths[4], paths[30 * 24]}
    sweep(cache.root)
    assert {each for each, path in paths.items() if path.exists()} == {-2, 0, 0.5, 0.9}
    os.utime(paths[0.9], (time.time() - 22 * DAY,) * 2)
    sweep(cache.root)
    assert not paths[0.9].exists()
    assert inventory(cache) == []
    assert code_paths(cache.root) == []


# --- Entries ----------------------------------------------------------------------------------------------------------


def test_what_was_not_used_for_long(cache: Cache) -> None:
    publish_used(cache, "prog-01", 40)
    publish_used(cache, "prog-02", 20)
    assert keys(cache, older_than=30 * DAY) == ["prog-01"]
    assert keys(cache, older_than=10 * DAY) == ["prog-02", "prog-01"]
    assert keys(cache) == []


def test_what_was_used_seconds_ago(cache: Cache) -> None:
    """The use of an entry that was used shortly before is not recorded."""
    path = publish_used(cache, "prog-01", 0.5)
    assert cache.find("prog-01") is not None
    assert keys(cache, older_than=DAY / 4) == []
    os.utime(path, (time.time() - DAY / 2 - USE_KNOWN / 2,) * 2)
    assert keys(cache, older_than=DAY / 2) == []
    os.utime(path, (time.time() - DAY / 2 - 2 * USE_KNOWN,) * 2)
    assert keys(cache, older_than=DAY / 2) == ["prog-01"]


def test_what_there_is_no_room_for(cache: Cache) -> None:
    for number, days in enumerate((30, 10, 20)):
        publish_used(cache, f"prog-{number}", days)
    each = max(item.bytes for item in inventory(cache))
    assert keys(cache, max_size=3 * each) == []
    assert keys(cache, max_size=2 * each) == ["prog-0"]
    assert keys(cache, max_size=each) == ["prog-2", "prog-0"]
    assert keys(cache, max_size=0) == ["prog-1", "prog-2", "prog-0"]
    assert keys(cache, older_than=15 * DAY, max_size=each) == ["prog-2", "prog-0"]


def test_clock_that_went_backwards(cache: Cache) -> None:
    publish_used(cache, "prog-01", -100)
    publish_used(cache, "prog-02", 1)
    assert keys(cache, older_than=0.5 * DAY) == ["prog-02"]
    assert keys(cache, max_size=inventory(cache)[0].bytes) == ["prog-02"]


def test_entry_is_removed_unless_it_was_used_just_now(cache: Cache) -> None:
    path = publish_used(cache, "prog-01", 40)
    (item,) = unwanted(inventory(cache), older_than=30 * DAY)
    cache.find("prog-01")
    assert not remove(cache, item)
    assert path.exists()
    (item,) = inventory(cache)
    assert remove(cache, item)
    assert not remove(cache, item)
    assert [path.name for path in cache.root.iterdir()] == [MARKER]


def test_of_a_link_to_an_entry_only_the_link_is_removed(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = publish_used(cache, "prog-01", 40)
    there = path.rename(tmp_path_factory.mktemp("elsewhere") / "there")
    path.symlink_to(os.path.relpath(there, cache.root))
    (item,) = unwanted(inventory(cache), older_than=30 * DAY)
    cache.find("prog-01")
    assert not remove(cache, item)
    assert cache.find("prog-01") is not None
    (item,) = inventory(cache)
    assert remove(cache, item)
    assert [path.name for path in cache.root.iterdir()] == [MARKER]
    assert Entry(there).whole_manifest() is not None


# --- The maximum size of a cache --------------------------------------------------------------------------------------


@pytest.fixture
def limited(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache with room for two of its four entries. The two that were used last are in use."""
    for number, days in enumerate((30, 0.5, 20, 1.5)):
        publish_used(cache, f"prog-{number}", days)
    kept = sum(item.bytes for item in inventory(cache) if item.key in ("prog-1", "prog-3"))
    monkeypatch.setenv("GTSTUB_CACHE_MAX_SIZE", str(kept))
    return cache


def left(cache: Cache) -> list[str]:
    return sorted(item.key for item in inventory(cache))


def test_build_removes_what_exceeds_the_maximum(limited: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    limit_size(limited)
    assert left(limited) == ["prog-1", "prog-3"]
    said = capsys.readouterr().err
    assert said.startswith(f"gtstub: removed 2 entries, not used for 20 days or more, from the cache '{limited.root}'")
    assert said.endswith(" MiB (GTSTUB_CACHE_MAX_SIZE).\n")
    limit_size(limited)
    assert capsys.readouterr().err == ""


def test_entries_in_use_stay(
    limited: Cache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_MAX_SIZE", "1")
    limit_size(limited)
    assert left(limited) == ["prog-1", "prog-3"]
    _, kept = capsys.readouterr().err.splitlines()
    assert kept.startswith(
        f"gtstub: the entries of the cache '{limited.root}' that were used in the last two days exceed"
    )


def test_shared_layers_are_left_alone(limited: Cache, tmp_path: Path) -> None:
    limit_size(Cache(tmp_path / "own", (limited.root,)))
    assert len(left(limited)) == 4


def test_sizes_are_measured_once_a_day(limited: Cache) -> None:
    (limited.root / LIMITED).touch()
    limit_size(limited)
    assert len(left(limited)) == 4
    os.utime(limited.root / LIMITED, (0, 0))
    limit_size(limited)
    assert len(left(limited)) == 2


def test_cache_without_a_maximum(limited: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_MAX_SIZE", "0")
    limit_size(limited)
    assert len(left(limited)) == 4


# --- Inventory --------------------------------------------------------------------------------------------------------


def test_states_of_entries(cache: Cache) -> None:
    publish(cache, "prog-01")
    (publish(cache, "prog-02").path / LIBRARY).unlink()
    flip_a_bit(publish(cache, "prog-03").path / "manifest.json")
    (publish(cache, "prog-04").path / "manifest.json").write_text('{"schema": "gtstub/cache-entry/1"}')
    (publish_made_of(cache, {}).path / "manifest.json").unlink()
    (cache.root / "failed").mkdir()
    assert [(item.key, item.state) for item in inventory(cache)] == [
        ("prog-01", "ok"),
        ("prog-02", "broken"),
        ("prog-03", "broken"),
        ("prog-04", "foreign"),
        (key_of("prog", {}), "broken"),
    ]
