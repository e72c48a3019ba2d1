"""
Cache entries: a directory for each compiled program, which exists whole or not at all.

An entry is built in a private directory beside its place and published by one rename. Who builds is agreed on in
`claim.py`; where two build the same program all the same, both succeed: the second finds the entry there, and uses it.
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
from typing import TYPE_CHECKING, Any

from gtstub.cache import entry
from gtstub.cache.cleanup import building_name, discard, set_aside, sweep
from gtstub.cache.key import Difference, differences, short_name
from gtstub.errors import CacheError, unwritable
from gtstub.util.canonical import plain

if TYPE_CHECKING:
    from gtstub._host import Program

OWN = "GTSTUB_CACHE_DIR"
SHARED = "GTSTUB_SHARED_CACHE_DIR"


@dataclasses.dataclass(frozen=True)
class StubArtifact:
    """A compiled program as processes pass it to each other: its entry. Loading it needs neither gt4py nor DaCe."""

    path: Path

    def load(self, baked: Mapping[str, Any] | None = None) -> Program:
        return entry.load(self.path, baked)


@dataclasses.dataclass(frozen=True)
class Nearest:
    """An entry that was built of other ingredients, and where they differ from those that were asked for."""

    path: Path
    manifest: Mapping[str, Any]
    differences: list[Difference]


@dataclasses.dataclass(frozen=True)
class Cache:
    """
    Entries are looked for in `root` first, then in the `shared` layers, in their order; they are loaded where they lie.
    New ones are built in `root`; a shared layer is never written to.
    """

    root: Path
    shared: tuple[Path, ...] = ()

    @property
    def layers(self) -> tuple[Path, ...]:
        return (self.root, *self.shared)

    def find(self, key: str) -> StubArtifact | None:
        """The entry of a key, verified; None where no layer has one that is whole and fits this machine."""
        for layer in self.layers:
            try:
                entry.verify_usable(layer / key)
            except CacheError:
                continue
            entry.mark_used(layer / key)
            return StubArtifact(layer / key)
        return None

    def entries(self) -> Iterator[Path]:
        """The directories of all entries, whole or not, layer by layer."""
        for layer in self.layers:
            with suppress(OSError):
                yield from filter(is_entry, sorted(layer.iterdir()))

    def nearest(self, name: str, ingredients: Mapping[str, Any], but: str = "") -> Nearest | None:
        """The entry of program `name`, but that of key `but`, whose ingredients differ least; the newest of several."""
        found: Nearest | None = None
        best: tuple[int, float] | None = None
        for path in self.entries():
            if path.name.rpartition("-")[0] != short_name(name) or path.name == but:
                continue
            try:
                manifest = entry.read_manifest(path)
            except CacheError:
                continue
            different = differences(ingredients, manifest["ingredients"])
            rank = (len(different), -manifest["built"]["time"])
            if manifest["name"] == name and (best is None or rank < best):
                best, found = rank, Nearest(path, manifest, different)
        return found

    @contextmanager
    def private_directory(self, key: str) -> Iterator[Path]:
        """A new directory on the file system of the entries, to build one in; it is gone afterwards."""
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

    def publish(self, directory: Path, key: str, manifest: Mapping[str, Any]) -> StubArtifact:
        """
        Makes `directory`, which holds files only, the entry of a key, unless another process was faster.

        `manifest` names the program as 'name', and 'stub' and 'library' among the files. It may say which 'workspaces'
        the caller lends, of which 'ingredients' the entry was made, which values are 'baked' in, for which 'machine' it
        was built, and as 'built' in how many 'seconds'. Time and host, and the digests of the files, are added here.
        Raises CacheError where that cannot be written, or where the key is taken by what is no entry of this gtstub's,
        or by one that this machine cannot run: two kinds of machines would replace each other's for ever.
        """
        try:
            for file in directory.iterdir():
                if file.is_symlink() or not file.is_file():
                    raise CacheError(f"A cache entry holds files only, but '{file}' is none.")
            files = {file.name: entry.describe(file) for file in sorted(directory.iterdir())}
            _write(directory / entry.MANIFEST, _document(manifest, key, files))
        except OSError as error:
            raise unwritable(directory, error) from error
        return self.adopt(directory, key)

    def adopt(self, directory: Path, key: str) -> StubArtifact:
        """Makes `directory`, an entry that is whole, that of a key, as `publish` does."""
        place = self.root / key
        machine = entry.read_manifest(directory)["machine"]
        try:
            for file in directory.iterdir():
                _sync(file)
            _sync(directory)
            while not _rename(directory, place):
                if entry.is_whole(place):
                    _check_replaces(place, machine)
                    return StubArtifact(place)
                if entry.is_foreign(place):
                    raise CacheError(f"The cache entry '{place}' is of another version of gtstub: take it away.")
                with self.private_directory(key) as grave, suppress(FileNotFoundError):
                    set_aside(place, grave)  # Should somebody else have been faster, it is whole, and goes back.
            _sync(self.root)
        except OSError as error:
            raise unwritable(place, error) from error
        return StubArtifact(place)


def is_entry(path: Path) -> bool:
    """Whether a directory is an entry, whole or not; a code path's directory, for one, is not."""
    if path.name.startswith(".") or not path.is_dir():
        return False
    return (path / entry.MANIFEST).exists() or re.search(r"-[0-9a-f]{32}$", path.name) is not None


def open_cache(default: Path | None = None, code_path: str = "") -> Cache:
    """
    The cache of this process: GTSTUB_CACHE_DIR, else '.gtstub_cache' in GT_CACHE_ROOT, else `default`, else the user's
    cache directory, over the shared layers that GTSTUB_SHARED_CACHE_DIR lists. `code_path` is a subdirectory of each.
    """
    if own := os.environ.get(OWN):
        root = Path(own)
    elif gt_root := os.environ.get("GT_CACHE_ROOT"):
        root = Path(gt_root) / ".gtstub_cache"
    elif default is not None:
        root = default
    else:
        import platformdirs  # Here, because most callers say where.

        root = platformdirs.user_cache_path("gtstub")
    layers = [root, *map(Path, filter(None, os.environ.get(SHARED, "").split(os.pathsep)))]
    first, *rest = dict.fromkeys(layer.absolute() / code_path for layer in layers)
    return Cache(first, tuple(rest))


def _document(manifest: Mapping[str, Any], key: str, files: Mapping[str, Any]) -> dict[str, Any]:
    document = {
        "schema": entry.SCHEMA,
        "key": key,
        "name": manifest["name"],
        "stub": manifest["stub"],
        "library": manifest["library"],
        "workspaces": manifest.get("workspaces", {}),
        "ingredients": plain(manifest.get("ingredients", {})),
        "baked": plain(manifest.get("baked", {})),
        "machine": {"cpu": [], "device": "", "arch": "", **plain(manifest.get("machine", {}))},
        "built": {"time": time.time(), "host": socket.gethostname(), "seconds": 0.0, **manifest.get("built", {})},
        "files": files,
    }
    for member in ("stub", "library"):
        if document[member] not in files:
            raise CacheError(f"The cache entry '{key}' lacks its file '{document[member]}'.")
    return {**document, "digest": entry.manifest_digest(document)}


def _check_replaces(place: Path, machine: Mapping[str, Any]) -> None:
    """Raises CacheError where the entry at `place`, of the same key, is none for the machine of the one built here."""
    manifest = entry.read_manifest(place)
    if manifest["machine"] != machine and (reason := entry.misfit(manifest)):
        raise CacheError(
            f"The cache entry '{place}' {reason}, and so it cannot stand for the one built here: name another directory"
            " in GTSTUB_CACHE_DIR."
        )


def _write(file: Path, document: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


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
