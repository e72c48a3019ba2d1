"""Cache entries packed into tar files, to carry them to other caches. Packing an entry always gives the same bytes."""

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
                raise entry.unreadable(name, error) from error
            member = tarfile.TarInfo(f"{manifest.key}/{name}")  # without owner and time
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(cache: Cache, file: BinaryIO) -> Entry:
    """
    Publishes a packed entry in `cache`, unless the cache has it already.

    Raises CacheError unless the file holds exactly one entry and the entry is whole.
    """
    try:
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            members = archive.getmembers()
            key = _key(members)
            with cache.private_directory(key) as private:
                archive.extractall(private, members, filter="data")
                manifest = Entry(private / key).verify()
                if manifest.key != key:
                    raise CacheError(f"The cache entry '{key}' says that its key is '{manifest.key}'.")
                for member in members:
                    if member.name.partition("/")[2] not in (manifests.FILE, *manifest.files):
                        raise _unexpected(member)
                return cache.adopt(private / key, key)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise CacheError(f"The file holds no cache entry that can be unpacked: {error}.") from error
    except OSError as error:
        raise unwritable(cache.root, error) from error


def _key(members: list[tarfile.TarInfo]) -> str:
    """The name of the one directory in the archive. Everything in the archive must be a file in that directory."""
    keys = set()
    for member in members:
        key, _, name = member.name.partition("/")
        if not member.isreg() or key.startswith(".") or not key or not name or "/" in name or name in (".", ".."):
            raise _unexpected(member)
        keys.add(key)
    if len(keys) != 1:
        raise CacheError(f"The file holds {len(keys)} cache entries, not one.")
    return keys.pop()


def _unexpected(member: tarfile.TarInfo) -> CacheError:
    return CacheError(f"The file holds more than a cache entry: '{member.name}'.")
