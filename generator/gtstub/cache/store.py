"""
The cache: a directory of entries, each of which exists whole or not at all.

An entry is built in a private directory beside its place and published by one rename. Processes agree by claims who
builds an entry (claims.py). If two build the same one all the same, both succeed: the second finds the entry and uses
it.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gtstub import settings
from gtstub.cache import manifest as manifests
from gtstub.cache.cleanup import building_name, discard, set_aside, sweep
from gtstub.cache.entry import Entry, unsupported
from gtstub.cache.key import Difference, differences, short_name
from gtstub.cache.manifest import File, Machine, Manifest
from gtstub.errors import CacheError, unwritable


@dataclasses.dataclass(frozen=True)
class Nearest:
    """An entry that was made of other ingredients, and where they differ from those that were asked for."""

    entry: Entry
    manifest: Manifest
    differences: list[Difference]


@dataclasses.dataclass(frozen=True)
class Cache:
    """
    Entries are looked for in `root` first, then in the `shared` layers in their order, and loaded where they lie. New
    ones are built in `root`; shared layers are never written to.
    """

    root: Path
    shared: tuple[Path, ...] = ()

    @property
    def layers(self) -> tuple[Path, ...]:
        return (self.root, *self.shared)

    def find(self, key: str) -> Entry | None:
        """The entry of a key, verified; None if no layer has one that is whole and that this machine can run."""
        for layer in self.layers:
            entry = Entry(layer / key)
            try:
                entry.verify_usable()
            except CacheError:
                continue
            entry.mark_used()
            return entry
        return None

    def entries(self) -> Iterator[Entry]:
        """All entries, whole or not, layer by layer."""
        for layer in self.layers:
            with suppress(OSError):
                yield from map(Entry, filter(is_entry, sorted(layer.iterdir())))

    def nearest(self, name: str, ingredients: Mapping[str, Any], but: str = "") -> Nearest | None:
        """
        The entry of program `name` whose ingredients differ least from these; the newest of several. The entry of key
        `but` is left out.
        """
        found: Nearest | None = None
        best: tuple[int, float] | None = None
        for entry in self.entries():
            if entry.key.rpartition("-")[0] != short_name(name) or entry.key == but:
                continue
            try:
                manifest = entry.manifest()
            except CacheError:
                continue
            different = differences(ingredients, manifest.ingredients)
            order = (len(different), -manifest.built.time)
            if manifest.name == name and (best is None or order < best):
                best, found = order, Nearest(entry, manifest, different)
        return found

    @contextmanager
    def private_directory(self, key: str) -> Iterator[Path]:
        """A new directory on the file system of the entries, to build one in. It is removed at the end of the block."""
        sweep(self.root)
        path = self.root / building_name(key)
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise unwritable(self.root, error) from error
        try:
            yield path
        finally:
            discard(path, self.root)

    def publish(self, directory: Path, key: str, manifest: Manifest) -> Entry:
        """
        Makes `directory`, which holds files only, the entry of a key, unless another process was faster.

        `manifest` comes without key, files, time and host; they are added here. Raises CacheError if the cache cannot
        be written, if the files of the manifest are not there, and if the key is taken by an entry of another version
        of gtstub or by one that this machine cannot run: two kinds of machines would replace each other's entry for
        ever.
        """
        try:
            for file in directory.iterdir():
                if file.is_symlink() or not file.is_file():
                    raise CacheError(f"A cache entry holds files only, but '{file}' is none.")
            complete = manifest._replace(
                key=key,
                files={file.name: File.of(file) for file in sorted(directory.iterdir())},
                built=manifest.built._replace(time=time.time(), host=socket.gethostname()),
            )
            for name in (complete.stub, complete.library):
                if name not in complete.files:
                    raise CacheError(f"The cache entry '{key}' lacks its file '{name}'.")
            text = json.dumps(complete.to_json(), indent=1, sort_keys=True) + "\n"
            (directory / manifests.FILE).write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritable(directory, error) from error
        return self.adopt(directory, key)

    def adopt(self, directory: Path, key: str) -> Entry:
        """Makes `directory`, an entry that is whole, the entry of a key, as `publish` does."""
        place = Entry(self.root / key)
        machine = Entry(directory).manifest().machine
        try:
            for file in directory.iterdir():
                _sync(file)
            _sync(directory)
            while not _rename(directory, place.path):
                if place.is_whole():
                    _check_usable_instead(place, machine)
                    return place
                if place.is_foreign():
                    raise CacheError(f"The cache entry '{place.path}' is of another version of gtstub: take it away.")
                with self.private_directory(key) as private, suppress(FileNotFoundError):
                    set_aside(place.path, private)  # If another process was faster, it is whole and goes back.
            _sync(self.root)
        except OSError as error:
            raise unwritable(place.path, error) from error
        return place


def is_entry(path: Path) -> bool:
    """Whether a directory is an entry, whole or not. The directory of a code path, for one, is not."""
    if path.name.startswith(".") or not path.is_dir():
        return False
    return (path / manifests.FILE).exists() or re.search(r"-[0-9a-f]{32}$", path.name) is not None


def open_cache(default: Path | None = None, code_path: str = "") -> Cache:
    """
    The cache of this process, over the shared layers that GTSTUB_SHARED_CACHE_DIR lists. Its root is what the
    environment names (`settings.cache_dir`), else `default`, else the user's cache directory. `code_path` is a
    subdirectory of each layer.
    """
    if (named := settings.cache_dir()) is not None:
        root, _ = named
    elif default is not None:
        root = default
    else:
        import platformdirs  # Here, because most callers say where.

        root = platformdirs.user_cache_path("gtstub")
    layers = [root.absolute(), *settings.shared_cache_dirs()]
    first, *rest = dict.fromkeys(layer / code_path for layer in layers)
    return Cache(first, tuple(rest))


def _check_usable_instead(entry: Entry, machine: Machine) -> None:
    """Raises CacheError if an entry of the same key cannot stand for one that was built here, for `machine`."""
    manifest = entry.manifest()
    if manifest.machine != machine and (reason := unsupported(manifest)):
        raise CacheError(
            f"The cache entry '{entry.path}' {reason}, and so it cannot stand for the one built here: name another"
            f" directory in {settings.CACHE_DIR}."
        )


def _sync(path: Path) -> None:
    """Returns when a file or a directory is on the disk, so that no crash leaves an entry that is named but empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Some file systems cannot do it for directories.
            raise
    finally:
        os.close(descriptor)


def _rename(directory: Path, place: Path) -> bool:
    """Whether the place was free."""
    try:
        directory.rename(place)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False
    return True
