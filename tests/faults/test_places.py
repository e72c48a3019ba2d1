"""Entries that are moved, and caches in strange places."""

from __future__ import annotations

import os
import shutil
import subprocess
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.store import Cache
from tests.faults import invariants
from tests.faults.builder import build, call, key_of
from tests.faults.workshop import Workshop


def moved_by_rename(entry: Path, to: Path) -> Path:
    return entry.rename(to / entry.name)


def moved_by_copy(entry: Path, to: Path) -> Path:
    copy = Path(shutil.copytree(entry, to / entry.name))
    shutil.rmtree(entry)
    return copy


def moved_by_tar(entry: Path, to: Path) -> Path:
    subprocess.run(["tar", "-cf", to / "entry.tar", "-C", entry.parent, entry.name], check=True)
    shutil.rmtree(entry)
    subprocess.run(["tar", "-xf", to / "entry.tar", "-C", to], check=True)
    (to / "entry.tar").unlink()
    return to / entry.name


@pytest.mark.parametrize("move", [moved_by_rename, moved_by_copy, moved_by_tar])
def test_moved_entry_works(workshop: Workshop, tmp_path: Path, move: Callable[[Path, Path], Path]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    artifact = build(Cache(here), workshop.parts, 0, None)
    program = artifact.load()
    moved = move(artifact.path, there)
    shutil.rmtree(here)
    out = array("d", [0])
    program(array("d", [1]), 2.0, out)  # One that is loaded already goes on.
    assert out.tolist() == [2.0]
    call(Entry(moved), 0)
    inode = moved.stat().st_ino
    invariants.check(workshop, there, None, {moved: inode})


def test_whole_cache_is_moved(workshop: Workshop, tmp_path: Path) -> None:
    for number in (0, 1):
        build(Cache(tmp_path / "here"), workshop.parts, number, None)
    (tmp_path / "here").rename(tmp_path / "there")
    invariants.check(workshop, tmp_path / "there", None, invariants.entries(tmp_path / "there"))
    assert not (tmp_path / "here").exists()


def test_symlinked_root(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "far" / "cache").mkdir(parents=True)
    (tmp_path / "near").symlink_to("far", target_is_directory=True)
    root = tmp_path / "near" / "cache"
    assert workshop.run(root).status == 0
    invariants.check(workshop, tmp_path / "far" / "cache", None, invariants.entries(tmp_path / "far" / "cache"))
    invariants.check(workshop, root, None, invariants.entries(root))


def test_symlinked_entry(workshop: Workshop, tmp_path: Path) -> None:
    """Somebody put an entry on another disk and a link in its place."""
    artifact = build(Cache(tmp_path / "far"), workshop.parts, 0, None)
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / key_of(0)).symlink_to(artifact.path)
    inode = artifact.path.stat().st_ino
    invariants.check(workshop, tmp_path / "near", None, {tmp_path / "near" / key_of(0): inode})


def test_loop_of_symlinks(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    ended = workshop.run(tmp_path / "a" / "cache")
    assert ended.is_refusal, ended.errors
    assert f"{tmp_path}/a/cache" in ended.errors
    assert "Too many levels of symbolic links" in ended.errors


def test_very_long_path(workshop: Workshop, tmp_path: Path) -> None:
    """Names of 200 bytes, up to the longest path that the libraries of an entry can be opened under."""
    root = tmp_path
    room = os.pathconf("/", "PC_PATH_MAX") - 200
    while len(str(root)) + 201 < room:
        root /= "p" * min(200, room - len(str(root)) - 1)
    assert len(str(root)) > 3000
    ended = workshop.run(root)
    assert ended.status == 0, ended.errors
    invariants.check(workshop, root)


def test_path_that_is_too_long(workshop: Workshop, tmp_path: Path) -> None:
    root = tmp_path.joinpath(*["p" * 200] * 21)
    ended = workshop.run(root)
    assert ended.is_refusal, ended.errors
    assert "File name too long" in ended.errors
    root = tmp_path / ("p" * 300)
    ended = workshop.run(root)
    assert ended.is_refusal, ended.errors
    assert "File name too long" in ended.errors


@pytest.mark.parametrize("kind", ["file", "link that leads nowhere"])
def test_place_of_an_entry_is_taken(workshop: Workshop, tmp_path: Path, kind: str) -> None:
    """Gtstub never made that: it is left where it is."""
    place = tmp_path / key_of(0)
    if kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to("gone")
    ended = workshop.run(tmp_path)
    assert ended.is_refusal, ended.errors
    assert ended.errors.startswith(f"The cache cannot be written at '{place}': Not a directory. ")
    assert place.is_symlink() or place.read_text() == "mine"
