"""Cache entries packed into tar files, to carry them to other caches. Packing an entry always gives the same bytes."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from gtstub import settings
from gtstub.entries.cache import manifest as manifests
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.key import is_key
from gtstub.entries.cache.manifest import is_plain
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError, unwritable

MOST_FILES = 1000
"""The files of the largest entry that is unpacked."""


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

    Raises CacheError unless the file holds exactly one entry and the entry is whole, or if it is larger than the
    maximum size of a cache.
    """
    with cache.private_directory("import") as private:
        try:
            with gzip.GzipFile(fileobj=file, mode="rb") as unzipped:
                portions = _Portions(unzipped)
                with tarfile.open(fileobj=cast("BinaryIO", portions), mode="r:") as archive:
                    key, names = _extract(archive, private)
                if not portions.end():
                    raise CacheError("The file holds more than a cache entry: bytes follow it.")
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
            raise CacheError(f"The file holds no cache entry that can be unpacked: {error}.") from error
        except OSError as error:
            raise unwritable(cache.root, error) from error
        entry = Entry(private / key)
        with suppress(FileNotFoundError, manifests.ManifestError):  # verify() reports these.
            if (found := manifests.read(entry.manifest_file).key) != key:
                raise CacheError(f"The cache entry '{key}' says that its key is '{found}'.")
        manifest = entry.verify()
        for name in names:
            if name not in (manifests.FILE, *manifest.files):
                raise _unexpected(f"{key}/{name}")
        return cache.adopt(private / key, key)


class _Portions:
    """A stream that reads at most a MiB at once, because the size in a tar header may be any number."""

    MOST = 2**20

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self._stream = stream
        self._last = b""
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.MOST:
            raise tarfile.ReadError("a header is too large")
        self._last = self._stream.read(size)
        return self._last

    def end(self) -> bool:
        """
        Whether the block that was read last begins the end of a tar file: zeros, which fill a last record. The module
        tarfile takes any block that is no header for the end, and reads no further.
        """
        rest = self._last + self._stream.read(self.MOST)
        return len(rest) <= self.MOST and not rest.strip(b"\0")


def _extract(archive: tarfile.TarFile, directory: Path) -> tuple[str, list[str]]:
    """
    Writes the one entry in the archive to a new directory below `directory`. Returns its key and the names of its
    files. Everything in the archive must be a file in the entry's directory, and be there once.
    """
    keys, names, size = set[str](), list[str](), 0
    for member in archive:
        key, _, name = member.name.partition("/")
        is_file = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
        if not is_file or not is_key(key) or not is_plain(name) or name in names:
            raise _unexpected(member.name)
        keys.add(key)
        if len(keys) > 1:
            raise CacheError("The file holds several cache entries, not one.")
        names.append(name)
        size += member.size
        if len(names) > MOST_FILES:
            raise CacheError(f"The file holds a cache entry of more than {MOST_FILES} files.")
        if size > settings.cache_max_size():
            raise CacheError(f"The file holds a cache entry that is larger than {settings.CACHE_MAX_SIZE} allows.")
        (directory / key).mkdir(exist_ok=True)
        content = archive.extractfile(member)
        assert content is not None, "It is a file."
        with content, (directory / key / name).open("xb") as copy:
            shutil.copyfileobj(content, copy)
    if not keys:
        raise CacheError("The file holds no cache entry.")
    return keys.pop(), names


def _unexpected(name: str) -> CacheError:
    return CacheError(f"The file holds more than a cache entry: {name!r}.")
