"""
Loading a cache entry: the directory of one compiled program, which `cache.py` builds.

An entry holds lib<name>.so and <name>_stub.so, the stub's text, both signatures, and manifest.json, which names them.
It can be moved: nothing in it knows where it lies. This module imports little, because a model loads many programs.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub._host import Program

SCHEMA = "gtstub/cache-entry/1"
MANIFEST = "manifest.json"


def load(path: str | PathLike[str]) -> Program:
    """Loads the compiled program of a cache entry. Raises CacheError where the entry is missing or incomplete."""
    entry = Path(path)
    manifest = read_manifest(entry)
    from gtstub import _host  # Here, because tools that only look at entries do not need the host.

    return _host.load(entry / manifest["stub"], entry / manifest["library"])


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a cache entry whose files are all there, and as long as they were when it was built."""
    try:
        manifest: Any = json.loads((path / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CacheError(f"There is no cache entry at '{path}'.") from None
    except (OSError, ValueError) as error:
        raise CacheError(f"The manifest of cache entry '{path}' cannot be read: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise CacheError(f"The manifest of cache entry '{path}' is not of schema '{SCHEMA}'.")
    try:
        sizes = {name: file["bytes"] for name, file in manifest["files"].items()}
        whole = {manifest["stub"], manifest["library"]} <= sizes.keys()
    except (KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise CacheError(f"The manifest of cache entry '{path}' is incomplete.")
    for name, expected in sizes.items():
        try:
            size = (path / name).stat().st_size
        except OSError:
            raise CacheError(f"The cache entry '{path}' lacks its file '{name}'.") from None
        if size != expected:
            raise CacheError(f"File '{name}' of cache entry '{path}' has {size} bytes, not {expected}.")
    return manifest
