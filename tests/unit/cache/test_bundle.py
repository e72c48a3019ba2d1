"""Entries as files: the same bytes for the same entry, and nothing but a whole entry is unpacked."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gtstub.entries.cache.bundle import pack, unpack
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import digest
from gtstub.entries.cache.store import Cache
from gtstub.entries.trust import MARKER
from gtstub.errors import CacheError
from tests.support.entries import LIBRARY, STUB, flip_a_bit, publish

KEY = f"prog-{'01234567' * 4}"
OTHER_KEY = f"prog-{'89abcdef' * 4}"


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


def _files(cache: Cache) -> list[Path]:
    return sorted(path for path in cache.root.rglob("*") if path.name != MARKER)


def refusal(cache: Cache, file: io.BytesIO) -> str:
    before = _files(cache)
    with pytest.raises(CacheError) as caught:
        unpack(cache, file)
    assert _files(cache) == before, "Something was left."
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
    assert refusal(there, tar_of(*whole, whole[0])) == f"The file holds more than a cache entry: '{whole[0][0]}'."
    for key in ("toolchain-0123.json", "set-aside", "prog-0123", f"{KEY}\n", f"\x1b[2J{KEY}", f"-{'0' * 32}"):
        moved = [(name.replace(KEY, key), content) for name, content in whole]
        first = min(name for name, _ in moved)
        assert refusal(there, tar_of(*moved)) == f"The file holds more than a cache entry: {first!r}."
    assert refusal(there, tar_of(*whole, link)) == f"The file holds more than a cache entry: '{KEY}/link'."
    assert refusal(there, tar_of(*whole, (f"{KEY}/more", b""))) == (
        f"The file holds more than a cache entry: '{KEY}/more'."
    )
    assert refusal(there, tar_of(*whole, (f"{OTHER_KEY}/more", b""))) == (
        "The file holds several cache entries, not one."
    )
    assert refusal(there, tar_of()) == "The file holds no cache entry."
    renamed = [(name.replace(KEY, OTHER_KEY), content) for name, content in whole]
    assert refusal(there, tar_of(*renamed)) == f"The cache entry '{OTHER_KEY}' says that its key is '{KEY}'."
    assert " lacks its file " in refusal(there, tar_of(*whole[1:]))
    changed = [(name, content[:-2] + b"x\n" if name.endswith(LIBRARY) else content) for name, content in whole]
    assert "its digest differs" in refusal(there, tar_of(*changed))


def test_nothing_follows_an_entry(tmp_path: Path) -> None:
    path = publish(Cache(tmp_path / "here"), KEY).path
    there = Cache(tmp_path / "there")
    there.root.mkdir()
    whole = packed(path)
    text = gzip.decompress(whole)
    end = len(text.rstrip(b"\0")) // 512 * 512 + 512
    for content in (
        whole + whole,
        whole + gzip.compress(b"text"),
        gzip.compress(text + b"text"),
        gzip.compress(text[:end] + b"x" * 512 + text[end:]),
        gzip.compress(text + bytes(2**20)),
    ):
        assert refusal(there, io.BytesIO(content)) == "The file holds more than a cache entry: bytes follow it."
    assert refusal(there, io.BytesIO(whole + b"text")).startswith("The file holds no cache entry that can be unpacked:")
    assert unpack(there, io.BytesIO(gzip.compress(text + bytes(10240)))).verify() == Entry(path).verify()


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
            assert not _files(there)
        else:
            assert artifact.verify() == Entry(path).verify(), "White space of the manifest may differ."
            shutil.rmtree(artifact.path)


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content in (b"text", gzip.compress(b"text"), gzip.compress(b"\0" * 512)):
        assert refusal(Cache(tmp_path), io.BytesIO(content)).startswith("The file holds ")


def test_large_archives_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    members = [(f"{KEY}/{number}", b"") for number in range(1001)]
    assert refusal(cache, tar_of(*members)) == "The file holds a cache entry of more than 1000 files."
    header = tarfile.TarInfo(f"{KEY}/{'x' * 200}")
    header.pax_headers = {"comment": "x" * 2**21}
    assert refusal(cache, tar_of(header)).endswith("a header is too large.")
    sparse = tarfile.TarInfo(f"{KEY}/sparse")
    sparse.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**50)}
    assert refusal(cache, tar_of(sparse)) == f"The file holds more than a cache entry: '{KEY}/sparse'."
    monkeypatch.setenv("GTSTUB_CACHE_MAX_SIZE", "1KiB")
    assert refusal(cache, tar_of((f"{KEY}/large", bytes(1025)))) == (
        "The file holds a cache entry that is larger than GTSTUB_CACHE_MAX_SIZE allows."
    )


# --- Manifests that anybody could have written ------------------------------------------------------------------------

STAGE = {"name": "saving", "begin": 1, "seconds": 1, "pid": 1}


def stages(value: Any) -> dict[str, Any]:
    """The member 'built' with these stages."""
    return {"built": {"time": 1, "host": "", "seconds": 1, "stages": value}}


WRONG_MEMBERS = [
    ({"built": None}, "has no member 'built' of type 'dict'"),
    ({"built": {"time": 10**400, "host": "", "seconds": 1}}, "has a member 'time' that is not a time"),
    ({"built": {"time": 1, "host": "", "seconds": -1}}, "has a member 'seconds' that is not a time"),
    ({"built": {"time": True, "host": "", "seconds": 1}}, "has no member 'time' of type 'int'"),
    ({"built": {"time": 1, "host": "\x1b[2J", "seconds": 1}}, "has a member 'host' that is not a line of text"),
    (stages(None), "has no member 'stages' of type 'list'"),
    (stages([1]), "has a member 'stages' that is not a list of the stages of a build"),
    (stages([STAGE] * 101), "has a member 'stages' that is not a list of the stages of a build"),
    (stages([{**STAGE, "name": "\x1b[2J"}]), "has a member 'name' that is not a line of text"),
    (stages([{**STAGE, "begin": "1"}]), "has no member 'begin' of type 'int'"),
    (stages([{**STAGE, "seconds": -1}]), "has a member 'seconds' that is not a time"),
    (stages([{**STAGE, "pid": 1.0}]), "has no member 'pid' of type 'int'"),
    (stages([{**STAGE, "pid": 0}]), "has a member 'pid' that is not the number of a process"),
    ({"name": 1}, "has no member 'name' of type 'str'"),
    ({"name": "two\nlines"}, "has a member 'name' that is not a line of text"),
    ({"name": "\ud800"}, "has a member 'name' that is not a line of text"),
    ({"library": "/bin/true"}, "lists no file '/bin/true'"),
    ({"workspaces": {"a": 1}}, "has values other than a line of text in member 'workspaces'"),
    (
        {"machine": {"cpu": [1], "device": "", "arch": ""}},
        "has values other than a line of text in member 'machine.cpu'",
    ),
    ({"baked": []}, "has no member 'baked' of type 'dict'"),
    ({"files": {"/dev/zero": {"bytes": 0, "sha256": ""}}}, "lists a file '/dev/zero', whose name has characters other"),
    ({"files": {"../x": {"bytes": 0, "sha256": ""}}}, "lists a file '../x', whose name has characters other"),
    ({"files": {"a\n": {"bytes": 0, "sha256": ""}}}, "lists a file 'a\\n', whose name has characters other"),
    ({"files": {STUB: None}}, f"gives neither size nor digest of file '{STUB}'"),
    ({"files": {STUB: {"bytes": 1.0, "sha256": ""}}}, "has no member 'bytes' of type 'int'"),
    ({"ingredients": {"x": json.loads("[" * 100 + "]" * 100)}}, "is nested more than 100 times"),
    ({"ingredients": {"x": json.loads("[" * 800 + "]" * 800)}}, "is nested more than 100 times"),
    ({"ingredients": {"x": math.nan}, "digest": None}, "is not the one that was written: its digest differs"),
    ({"ingredients": {"x": math.inf}, "digest": ""}, "is not the one that was written: its digest differs"),
]


@pytest.mark.parametrize(("members", "problem"), WRONG_MEMBERS, ids=range(len(WRONG_MEMBERS)))
def test_wrong_manifest_is_refused(tmp_path: Path, members: dict[str, object], problem: str) -> None:
    path = publish(Cache(tmp_path / "here"), KEY).path
    document = json.loads((path / "manifest.json").read_text()) | members
    if "digest" not in members:
        document["digest"] = digest(document)
    text = json.dumps(document)
    files = [(name, text.encode() if name.endswith("manifest.json") else content) for name, content in files_of(path)]
    there = Cache(tmp_path / "there")
    there.root.mkdir()
    assert f" {problem}" in refusal(there, tar_of(*files))


@pytest.mark.parametrize("content", [b"[" * 200_000, b"1" * 5000, b"\xff", b" " * (2**24 + 1)], ids=range(4))
def test_manifest_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    tmp_path.joinpath("there").mkdir()
    message = refusal(Cache(tmp_path / "there"), tar_of((f"{KEY}/manifest.json", content)))
    assert message.partition("' ")[2].startswith("cannot be read: ")


def test_entry_whose_files_are_no_regular_files_is_broken(tmp_path: Path) -> None:
    """A device would be read without end, and a FIFO would block."""
    for kind, name in enumerate((LIBRARY, LIBRARY, "manifest.json")):
        entry = publish(Cache(tmp_path), f"prog-{kind:032}")
        (entry.path / name).unlink()
        if kind == 0:
            (entry.path / name).symlink_to("/dev/zero")
        else:
            os.mkfifo(entry.path / name)
        with pytest.raises(CacheError, match="ot a regular file"):
            entry.verify()
        assert not entry.is_foreign()
