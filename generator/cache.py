"""
Cache entries: a directory for each compiled program, which exists whole or not at all.

An entry is built in a private directory beside its place and published by one rename. Two processes that build the same
program at the same time both succeed: the second one to finish finds the entry there, and uses it.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub import __version__, entry
from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub._host import Program


@dataclasses.dataclass(frozen=True)
class StubArtifact:
    """A compiled program as processes pass it to each other: its entry. Loading it needs neither gt4py nor DaCe."""

    path: Path

    def load(self) -> Program:
        return entry.load(self.path)


def default_root() -> Path:
    """Where entries are kept unless the caller says otherwise: GTSTUB_CACHE_DIR, else the user's cache directory."""
    if directory := os.environ.get("GTSTUB_CACHE_DIR"):
        return Path(directory).resolve()
    import platformdirs  # Here, because most callers say where.

    return platformdirs.user_cache_path("gtstub")


def key(name: str, inputs: Mapping[str, Any]) -> str:
    """The name of the entry that is made of `inputs`, which JSON can express: everything that decides what is built."""
    text = json.dumps({"gtstub": __version__, **inputs}, sort_keys=True)
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def find(root: Path, key_: str) -> StubArtifact | None:
    """The entry of a key; None where there is none, or where it is broken and has to be built again."""
    try:
        entry.read_manifest(root / key_)
    except CacheError:
        return None
    return StubArtifact(root / key_)


@contextmanager
def private_directory(root: Path, key_: str) -> Iterator[Path]:
    """A new directory on the file system of the entries, to build one in; it is gone afterwards."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=f".building-{key_[:64]}-", dir=root))
    except OSError as error:
        raise CacheError(f"The cache directory '{root}' cannot be written: {error.strerror}.") from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def publish(directory: Path, root: Path, key_: str, manifest: Mapping[str, Any]) -> StubArtifact:
    """
    Makes `directory` the entry of a key, unless another process was faster. `manifest` names 'stub' and 'library'
    among its files, and says what they were made of; their digests are added here.
    """
    files = {file.name: _describe(file) for file in sorted(directory.iterdir())}
    document = {**manifest, "schema": entry.SCHEMA, "version": __version__, "key": key_, "files": files}
    (directory / entry.MANIFEST).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    while True:
        try:
            directory.rename(root / key_)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise CacheError(f"The cache entry '{root / key_}' cannot be written: {error.strerror}.") from error
        else:
            return StubArtifact(root / key_)
        if (winner := find(root, key_)) is not None:
            return winner
        _set_aside(root, key_)


def verify(path: Path) -> None:
    """Raises CacheError unless every file of an entry is the one that was built."""
    for name, file in entry.read_manifest(path)["files"].items():
        if _describe(path / name) != file:
            raise CacheError(
                f"File '{name}' of cache entry '{path}' is not the one that was built: its digest differs."
            )


def _describe(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _set_aside(root: Path, key_: str) -> None:
    """Takes a broken entry out of the way; another process may have done so already."""
    with private_directory(root, key_) as grave:
        try:
            (root / key_).rename(grave / "broken")
        except FileNotFoundError:
            return
