"""
The cache: a directory of entries.

A process builds an entry in a private directory and publishes it with one rename, so no other process sees an
incomplete entry. Claims decide which process builds an entry (claims.py). If two processes build the same entry all the
same, both succeed: the second one uses the entry of the first.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gtstub import settings
from gtstub.entries.cache import manifest as manifests
from gtstub.entries.cache.cleanup import building_name, discard, set_aside, sweep
from gtstub.entries.cache.entry import Entry, entries_in, unsupported
from gtstub.entries.cache.key import Difference, differences, short_name
from gtstub.entries.cache.manifest import File, Manifest
from gtstub.entries.trust import check_root, make_directory, mark_root, restrict
from gtstub.errors import CacheError, TrustError, unwritable
from gtstub.util.regular import opened


@dataclasses.dataclass(frozen=True)
class Nearest:
    """An entry with other ingredients, and the differences to the requested ones."""

    entry: Entry
    manifest: Manifest
    differences: list[Difference]

    def distance(self) -> tuple[bool, int, float]:
        has_other_static = any(each.path.partition(".")[0] == "static" for each in self.differences)
        return has_other_static, len(self.differences), -self.manifest.built.time


@dataclasses.dataclass(frozen=True)
class Cache:
    """
    Lookup searches `root` first, then the `shared` layers in order, and loads entries in place. New entries go to
    `root`; shared layers are read-only.
    """

    root: Path
    shared: tuple[Path, ...] = ()

    @property
    def layers(self) -> tuple[Path, ...]:
        return (self.root, *self.shared)

    @property
    def _top(self) -> Path:
        """The directory that has the marker: not the subdirectory of a code path."""
        top = settings.cache_dir()[0].absolute()
        return top if self.root.is_relative_to(top) else self.root

    def find(self, key: str) -> Entry | None:
        """
        The entry of a key in the first layer where it is whole and this machine can run it, or None. Raises TrustError
        if the entry of a layer is not trusted: to skip it would hide this, and build all programs again.
        """
        for entry in (Entry(layer / key) for layer in self.layers):
            try:
                entry.verify_usable()
            except TrustError:
                raise
            except CacheError:
                continue
            entry.mark_used()
            return entry
        return None

    def find_anew(self, key: str) -> Entry | None:
        """
        Does the same for a process that has looked before. A client of NFS remembers for up to a minute that a name was
        missing, but not beyond the next time that the directory of the name is opened.
        """
        with suppress(OSError), opened(self.root):
            pass
        return self.find(key)

    def entries(self) -> Iterator[Entry]:
        """All entries, whole or not, layer by layer."""
        for layer in self.layers:
            with suppress(OSError):
                yield from map(Entry, entries_in(layer))

    def nearest(self, name: str, ingredients: Mapping[str, Any], before: float = math.inf) -> Nearest | None:
        """The first of `similar`, of those built before a time."""
        return next((each for each in self.similar(name, ingredients) if each.manifest.built.time < before), None)

    def similar(self, name: str, ingredients: Mapping[str, Any]) -> list[Nearest]:
        """
        The entries of program `name`, the most similar to `ingredients` first: those with the same static arguments,
        then those with the fewest differences, then the newest.
        """
        found = []
        for entry in self.entries():
            if entry.key.rpartition("-")[0] == short_name(name):
                with suppress(CacheError):
                    manifest = entry.manifest()
                    if manifest.name == name:
                        found.append(Nearest(entry, manifest, differences(ingredients, manifest.ingredients)))
        return sorted(found, key=Nearest.distance)

    @contextmanager
    def private_directory(self, key: str) -> Iterator[Path]:
        """A new directory on the file system of the cache, to build an entry in. The end of the block removes it."""
        sweep(self.root)
        path = self.root / building_name(key)
        try:
            make_directory(self.root, exist_ok=True)
            mark_root(self._top)
            check_root(self.root)
            make_directory(path, 0o700)  # Nobody else can open what is being built, whatever the umask is.
        except OSError as error:
            raise unwritable(self.root, error) from error
        try:
            yield path
        finally:
            discard(path, self.root)

    def publish(self, directory: Path, key: str, manifest: Manifest) -> Entry:
        """
        Publishes `directory`, which contains only files, as the entry of a key, with a completed `manifest`. If another
        process was faster, returns that process's entry.

        Raises CacheError if the cache cannot be written, if a library is missing, or if the key has an entry of another
        version of gtstub or one that this machine cannot run, because two kinds of machines would keep replacing it.
        """
        try:
            for file in directory.iterdir():
                if file.is_symlink() or not file.is_file():
                    raise CacheError(f"A cache entry holds only files, but '{file}' is not a file.")
            complete = manifest._replace(
                key=key,
                files={file.name: File.of(file) for file in sorted(directory.iterdir())},
                built=manifest.built._replace(time=time.time(), host=socket.gethostname()),
            )
            text = json.dumps(complete.to_json(), indent=1, sort_keys=True) + "\n"
            (directory / manifests.FILE).write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritable(directory, error) from error
        return self.adopt(directory, key)

    def adopt(self, directory: Path, key: str) -> Entry:
        """Publishes `directory`, a whole entry with a manifest, as `publish` does."""
        place = Entry(self.root / key)
        machine = Entry(directory).manifest().machine
        try:
            files = list(directory.iterdir())
            for file in (directory, *files):  # what is in it gets the permissions that it has
                restrict(file)
            for file in (*files, directory):
                _sync(file)
            while not _rename(directory, place.path):
                if (found := place.whole_manifest()) is not None:
                    if found.machine != machine and (reason := unsupported(found)):
                        raise CacheError(
                            f"The cache entry '{place.path}' {reason}. It cannot replace the one built here: name"
                            f" another directory in {settings.CACHE_DIR}."
                        )
                    return place
                if place.is_unreadable():
                    raise CacheError(
                        f"This user may not read the cache entry '{place.path}': ask its owner to make it readable, or"
                        f" name another directory in {settings.CACHE_DIR}."
                    )
                if place.is_foreign():
                    raise CacheError(f"Another version of gtstub made the cache entry '{place.path}': remove it.")
                with self.private_directory(key) as private, suppress(FileNotFoundError):
                    set_aside(place.path, private)  # If another process was faster, its whole entry goes back.
            _sync(self.root)
        except OSError as error:
            raise unwritable(place.path, error) from error
        return place


def open_cache(code_path: str = "") -> Cache:
    """
    The cache of this process: `settings.cache_dir`, and the shared layers of GTSTUB_SHARED_CACHE_DIR. `code_path` is a
    subdirectory of each layer.
    """
    root, _ = settings.cache_dir()
    first, *rest = dict.fromkeys(layer / code_path for layer in (root.absolute(), *settings.shared_cache_dirs()))
    return Cache(first, tuple(rest))


def _sync(path: Path) -> None:
    """Waits until a file or a directory is on the disk, so that a crash cannot leave an entry with empty files."""
    with opened(path) as descriptor:
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # Some file systems cannot sync directories.
                raise


def _rename(directory: Path, place: Path) -> bool:
    """Renames an entry; False if the key is taken."""
    own = directory.stat()
    try:
        directory.rename(place)
    except FileNotFoundError:
        # A server of NFS whose answer was lost is asked again, and has no longer what it has renamed.
        with suppress(OSError):
            if os.path.samestat(own, place.stat()):
                return True
        raise
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False
    return True
