"""Entries as files: the same bytes for the same entry, and nothing but a whole entry is unpacked."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from pathlib import Path

import pytest

from gtstub.cache.bundle import pack, unpack
from gtstub.cache.entry import Entry
from gtstub.cache.store import Cache
from gtstub.errors import CacheError
from tests.support.entries import LIBRARY, STUB, flip_a_bit, publish

KEY = "prog-0123"


def packed(path: Path) -> bytes:
    file = io.BytesIO()
    pack(Entry(path), file)
    return file.getvalue()


def tar_of(*members: tuple[str, bytes] | tarfile.TarInfo) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    file.seek(0)
    return file


def files_of(path: Path) -> list[tuple[str, bytes]]:
    return [(f"{path.name}/{file.name}", file.read_bytes()) for file in sorted(path.iterdir())]


def refusal(cache: Cache, file: io.BytesIO) -> str:
    before = sorted(cache.root.rglob("*"))
    with pytest.raises(CacheError) as caught:
        unpack(cache, file)
    assert sorted(cache.root.rglob("*")) == before, "Something was left."
    return str(caught.value)


def test_entry_goes_to_another_cache(tmp_path: Path) -> None:
    here, there = Cache(tmp_path / "here"), Cache(tmp_path / "there")
    path = publish(here, KEY, ingredients={"n": 1}).path
    artifact = unpack(there, io.BytesIO(packed(path)))
    assert artifact == there.find(KEY)
    assert artifact.verify() == Entry(path).verify()
    assert files_of(artifact.path) == files_of(path)
    assert unpack(there, io.BytesIO(packed(path))) == artifact


def test_same_entry_gives_the_same_bytes(tmp_path: Path) -> None:
    path = publish(Cache(tmp_path / "here"), KEY).path
    first = packed(path)
    assert first[4:8] == bytes(4), "The time when it was compressed stands in it."
    moved = unpack(Cache(tmp_path / "there"), io.BytesIO(first)).path
    (moved / STUB).chmod(0o700)
    assert packed(moved) == first


def test_broken_entry_is_not_packed(tmp_path: Path) -> None:
    path = publish(Cache(tmp_path), KEY).path
    flip_a_bit(path / LIBRARY)
    with pytest.raises(CacheError) as caught:
        packed(path)
    assert f"File '{LIBRARY}' of cache entry" in str(caught.value)


def test_what_is_no_whole_entry_is_refused(tmp_path: Path) -> None:
    path = publish(Cache(tmp_path / "here"), KEY).path
    whole = files_of(path)
    there = Cache(tmp_path / "there")
    there.root.mkdir()
    link = tarfile.TarInfo(f"{KEY}/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for name in ("../evil", "/etc/evil", f"{KEY}/../../evil", f"{KEY}/..", ".claims/evil", f"{KEY}/sub/evil", "evil"):
        assert refusal(there, tar_of(*whole, (name, b"x"))) == f"The file holds more than a cache entry: '{name}'."
    assert refusal(there, tar_of(*whole, link)) == f"The file holds more than a cache entry: '{KEY}/link'."
    assert refusal(there, tar_of(*whole, (f"{KEY}/more", b""))) == (
        f"The file holds more than a cache entry: '{KEY}/more'."
    )
    assert refusal(there, tar_of(*whole, ("other/more", b""))) == "The file holds 2 cache entries, not one."
    assert refusal(there, tar_of()) == "The file holds 0 cache entries, not one."
    renamed = [(name.replace(KEY, "prog-4567"), content) for name, content in whole]
    assert refusal(there, tar_of(*renamed)) == f"The cache entry 'prog-4567' says that its key is '{KEY}'."
    assert " lacks its file " in refusal(there, tar_of(*whole[1:]))
    changed = [(name, content[:-2] + b"x\n" if name.endswith(LIBRARY) else content) for name, content in whole]
    assert "its digest differs" in refusal(there, tar_of(*changed))


@pytest.mark.parametrize("length", [0, 5, 20, 100, 300])
def test_file_that_was_cut_off_is_refused(tmp_path: Path, length: int) -> None:
    content = packed(publish(Cache(tmp_path / "here"), KEY).path)[:length]
    (tmp_path / "there").mkdir()
    message = refusal(Cache(tmp_path / "there"), io.BytesIO(content))
    assert message.startswith("The file holds ")


def test_flipped_bit_is_found_or_does_no_harm(tmp_path: Path) -> None:
    path = publish(Cache(tmp_path / "here"), KEY).path
    there = Cache(tmp_path / "there")
    content = packed(path)
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1
        try:
            artifact = unpack(there, io.BytesIO(damaged))
        except CacheError:
            assert not list(there.root.glob("*"))
        else:
            assert artifact.verify() == Entry(path).verify(), "White space of the manifest may differ."
            shutil.rmtree(artifact.path)


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content in (b"text", gzip.compress(b"text"), gzip.compress(b"\0" * 512)):
        assert refusal(Cache(tmp_path), io.BytesIO(content)).startswith("The file holds ")
