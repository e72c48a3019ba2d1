"""An entry is damaged where it lies: it is refused with the file's name, and built again by who may build."""

from __future__ import annotations

import json
import random
import shutil
from array import array
from collections.abc import ItemsView
from pathlib import Path

import pytest

import gtstub
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError
from tests.faults import invariants
from tests.faults.builder import build, call, key_of
from tests.faults.workshop import Workshop

SEED = 7
FLIPS = 12
FILES = ("libprog.so", "prog_stub.so", "manifest.json")


def check_damaged(workshop: Workshop, cache: Cache, file: str, content: bytes) -> None:
    """Puts `content` in place of a file; it is noticed, and healed."""
    path = cache.root / key_of(0)
    good = (path / file).read_bytes()
    if file == "manifest.json" and is_same_document(good, content):
        return  # It was the line's end, or the last digit of a time, which a number of 64 bits does not hold.
    aside = path / "aside"  # No process that has the file mapped sees it change.
    aside.write_bytes(content)
    aside.rename(path / file)
    with pytest.raises(CacheError) as caught:
        gtstub.load(path)
    what = "manifest" if file == "manifest.json" else f"'{file}'"
    assert what in str(caught.value)
    assert str(path) in str(caught.value)
    assert cache.find(key_of(0)) is None
    call(build(cache, workshop.parts, 0, None), 0)
    if file != "manifest.json":  # It says when it was built.
        assert (path / file).read_bytes() == good
    invariants.check_entries(cache.root)


def is_same_document(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


@pytest.mark.parametrize("file", FILES)
def test_flipped_bit(workshop: Workshop, tmp_path: Path, file: str) -> None:
    cache = Cache(tmp_path)
    artifact = build(cache, workshop.parts, 0, None)
    places = random.Random(SEED)
    for _ in range(FLIPS):
        content = bytearray((artifact.path / file).read_bytes())
        byte, bit = places.randrange(len(content)), places.randrange(8)
        print(f"'{file}' of {len(content)} bytes: bit {bit} of byte {byte}")
        content[byte] ^= 1 << bit
        check_damaged(workshop, cache, file, bytes(content))


@pytest.mark.parametrize("file", FILES)
def test_truncated(workshop: Workshop, tmp_path: Path, file: str) -> None:
    cache = Cache(tmp_path)
    artifact = build(cache, workshop.parts, 0, None)
    size = (artifact.path / file).stat().st_size
    for length in (0, 1, size // 2, size // 4096 * 4096, size - 1):
        content = (artifact.path / file).read_bytes()[:length]
        check_damaged(workshop, cache, file, content)


class Replacing(dict[str, object]):
    """No values; a file takes the place of another one when they are compared, after the files were verified."""

    def __init__(self, new: Path, old: Path) -> None:
        self._files = new, old

    def items(self) -> ItemsView[str, object]:
        new, old = self._files
        if new.exists():
            new.replace(old)
        return super().items()


@pytest.mark.parametrize("file", ["libprog.so", "prog_stub.so"])
def test_replaced_between_verification_and_loading(workshop: Workshop, tmp_path: Path, file: str) -> None:
    """The dynamic loader accepts the new file: only its state shows that it is not the verified one."""
    entry = build(Cache(tmp_path / "cache"), workshop.parts, 0, None)
    new = Path(shutil.copy(workshop.parts / "1" / file, tmp_path))
    with new.open("ab") as appended:
        appended.write(b"\0")
    with pytest.raises(CacheError, match=f"File '{file}' of cache entry"):
        entry.load(Replacing(new, entry.path / file))


def test_replaced_by_a_whole_file_between_verification_and_loading(workshop: Workshop, tmp_path: Path) -> None:
    entry = build(Cache(tmp_path / "cache"), workshop.parts, 0, None)
    file = entry.path / "libprog.so"
    new = Path(shutil.copy(file, tmp_path))
    inode = new.stat().st_ino
    program = entry.load(Replacing(new, file))
    assert file.stat().st_ino == inode
    out = array("d", [0, 0, 0])
    program(array("d", [1, 2, 3]), 10.0, out)
    assert out.tolist() == [10.0, 20.0, 30.0]


def test_new_process_heals(workshop: Workshop, tmp_path: Path) -> None:
    artifact = build(Cache(tmp_path), workshop.parts, 0, None)
    (artifact.path / "libprog.so").write_bytes(b"")
    invariants.check_works(workshop, tmp_path, 0)
    invariants.check_entries(tmp_path)
