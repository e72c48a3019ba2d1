"""A cache entry as one file that can be carried to another cache: a tar file, the same bytes for the same entry."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import BinaryIO

from gtstub.cache import manifest as manifests
from gtstub.cache.entry import Entry
from gtstub.cache.store import Cache
from gtstub.errors import CacheError, unwritable


def pack(entry: Entry, file: BinaryIO) -> None:
    """Writes an entry. Raises CacheError if it is not whole."""
    manifest = entry.verify()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted((*manifest.files, manifests.FILE)):
            try:
                content = (entry.path / name).read_bytes()
            except OSError as error:  # Another process may have removed it meanwhile.
                raise CacheError(
                    f"File '{name}' of cache entry '{entry.path}' cannot be read: {error.strerror}."
                ) from error
            member = tarfile.TarInfo(f"{manifest.key}/{name}")  # without owner and time
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(cache: Cache, file: BinaryIO) -> Entry:
    """
    Publishes what `pack` wrote in `cache`, unless the entry is there already.

    Raises CacheError if the file holds anything but one entry that is whole.
    """
    try:
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            members = archive.getmembers()
            key = _key(members)
            with cache.private_directory(key) as private:
                archive.extractall(private, members, filter="data")
                _check(Entry(private / key), members)
                return cache.adopt(private / key, key)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise CacheError(f"The file holds no cache entry that can be unpacked: {error}.") from error
    except OSError as error:
        raise unwritable(cache.root, error) from error


def _key(members: list[tarfile.TarInfo]) -> str:
    """The one directory that all files lie in. There must be nothing but files, and none elsewhere."""
    keys = set()
    for member in members:
        key, _, name = member.name.partition("/")
        if not member.isreg() or key.startswith(".") or not key or not name or "/" in name or name in (".", ".."):
            raise CacheError(f"The file holds more than a cache entry: '{member.name}'.")
        keys.add(key)
    if len(keys) != 1:
        raise CacheError(f"The file holds {len(keys)} cache entries, not one.")
    return keys.pop()


def _check(entry: Entry, members: list[tarfile.TarInfo]) -> None:
    manifest = entry.verify()
    if manifest.key != entry.key:
        raise CacheError(f"The cache entry '{entry.key}' says that its key is '{manifest.key}'.")
    for member in members:
        if member.name.partition("/")[2] not in (manifests.FILE, *manifest.files):
            raise CacheError(f"The file holds more than a cache entry: '{member.name}'.")
