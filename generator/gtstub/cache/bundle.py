"""A cache entry as one file, to be carried to another cache: a tar file, the same bytes for the same entry."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

from gtstub.cache import entry
from gtstub.cache.store import Cache, StubArtifact
from gtstub.errors import CacheError, unwritable


def pack(path: Path, file: BinaryIO) -> None:
    """Writes the entry at `path`, which must be whole; else raises CacheError."""
    manifest = entry.verify(path)
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted((*manifest["files"], entry.MANIFEST)):
            try:
                content = (path / name).read_bytes()
            except OSError as error:  # It may have been pruned meanwhile.
                raise CacheError(f"File '{name}' of cache entry '{path}' cannot be read: {error.strerror}.") from error
            member = tarfile.TarInfo(f"{manifest['key']}/{name}")  # of nobody, and of no time
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(cache: Cache, file: BinaryIO) -> StubArtifact:
    """
    Publishes what `pack` wrote in `cache`, unless the entry is there already.

    Raises CacheError where the file holds anything but one entry that is whole.
    """
    try:
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            members = archive.getmembers()
            key = _key(members)
            with cache.private_directory(key) as private:
                archive.extractall(private, members, filter="data")
                _check(private / key, key, members)
                return cache.adopt(private / key, key)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise CacheError(f"The file holds no cache entry that can be unpacked: {error}.") from error
    except OSError as error:
        raise unwritable(cache.root, error) from error


def _key(members: list[tarfile.TarInfo]) -> str:
    """The one directory that all files lie in. Nothing may lie elsewhere, or be anything but a file."""
    keys = set()
    for member in members:
        key, _, name = member.name.partition("/")
        if not member.isreg() or key.startswith(".") or not key or not name or "/" in name or name in (".", ".."):
            raise CacheError(f"The file holds more than a cache entry: '{member.name}'.")
        keys.add(key)
    if len(keys) != 1:
        raise CacheError(f"The file holds {len(keys)} cache entries, not one.")
    return keys.pop()


def _check(path: Path, key: str, members: list[tarfile.TarInfo]) -> None:
    manifest = entry.verify(path)
    if manifest["key"] != key:
        raise CacheError(f"The cache entry '{key}' says that its key is '{manifest['key']}'.")
    for member in members:
        if member.name.partition("/")[2] not in (entry.MANIFEST, *manifest["files"]):
            raise CacheError(f"The file holds more than a cache entry: '{member.name}'.")
