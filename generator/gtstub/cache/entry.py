"""
Loading a cache entry: the directory of one compiled program, which `cache.py` publishes.

An entry holds lib<name>.so and <name>_stub.so, the stub's text, both signatures, and manifest.json, which names them.
It can be moved: nothing in it knows where it lies. This module imports little, because a model loads many programs.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.errors import CacheError
from gtstub.util.canonical import canonical, plain

if TYPE_CHECKING:
    from gtstub._host import Program

SCHEMA = "gtstub/cache-entry/2"
MANIFEST = "manifest.json"

DAY = 24 * 60 * 60
"""Seconds; the last use of an entry is known to the day, so that a model does not write to its cache on every start."""


def load(path: str | PathLike[str], baked: Mapping[str, Any] | None = None) -> Program:
    """
    Loads the compiled program of a cache entry.

    Raises CacheError where a file of the entry is missing or not the one that was built, where this machine cannot run
    it, and where a value that was compiled in is not the one that `baked` has under its name.
    """
    program, _ = load_with_manifest(Path(path), baked or {})
    return program


def load_with_manifest(entry: Path, baked: Mapping[str, Any]) -> tuple[Program, dict[str, Any]]:
    """As `load`, for who wants to know more of the entry; it is read once."""
    manifest = verify_usable(entry)
    check_baked(entry, manifest, baked)
    from gtstub import _host  # Here, because tools that only look at entries do not need the host.

    try:
        program = _host.load(entry / manifest["stub"], entry / manifest["library"])
    except RuntimeError:
        # It may be gone by now, which is said then, or another one may have come in its place.
        manifest = verify(entry)
        program = _host.load(entry / manifest["stub"], entry / manifest["library"])
    mark_used(entry)
    return program, manifest


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a cache entry whose files are all there, and as long as they were when it was built."""
    try:
        manifest: Any = json.loads((path / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CacheError(f"There is no cache entry at '{path}'.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CacheError(f"The manifest of cache entry '{path}' cannot be read: {error}.") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise CacheError(f"The manifest of cache entry '{path}' is not of schema '{SCHEMA}'.")
    if manifest.get("digest") != manifest_digest(manifest):
        raise CacheError(f"The manifest of cache entry '{path}' is not the one that was written: its digest differs.")
    for name, expected in manifest["files"].items():
        try:
            size = (path / name).stat().st_size
        except OSError:
            raise CacheError(f"The cache entry '{path}' lacks its file '{name}'.") from None
        if size != expected["bytes"]:
            raise CacheError(f"File '{name}' of cache entry '{path}' has {size} bytes, not {expected['bytes']}.")
    return manifest


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest without its member 'digest', hexadecimal."""
    rest = {name: value for name, value in manifest.items() if name != "digest"}
    try:
        return hashlib.sha256(canonical(rest)).hexdigest()
    except ValueError:  # NaN, which a manifest never has
        return ""


def verify(path: Path) -> dict[str, Any]:
    """The manifest of a cache entry every file of which is the one that was built; else raises CacheError."""
    manifest = read_manifest(path)
    for name, expected in manifest["files"].items():
        try:
            found = describe(path / name)
        except OSError as error:
            raise CacheError(f"File '{name}' of cache entry '{path}' cannot be read: {error.strerror}.") from None
        if found != expected:
            raise CacheError(
                f"File '{name}' of cache entry '{path}' is not the one that was built: its digest differs."
            )
    return manifest


def verify_usable(path: Path) -> dict[str, Any]:
    """The manifest of a verified cache entry that this machine can run; else raises CacheError."""
    manifest = verify(path)
    if reason := misfit(manifest):
        raise CacheError(f"The cache entry '{path}' {reason}: build it on this machine.")
    return manifest


def is_whole(path: Path) -> bool:
    """Whether every file is the one that was built: whether it fits this machine is not asked."""
    try:
        verify(path)
    except CacheError:
        return False
    return True


def is_foreign(path: Path) -> bool:
    """Whether the entry is of another version of gtstub, which has another schema: it is not ours to judge."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        schema, digest = manifest["schema"], manifest.get("digest")
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False
    family = SCHEMA.rpartition("/")[0]
    if schema == f"{family}/1":  # It had no digest.
        return True
    # Else a flipped bit in the name of the schema would keep a broken entry from being built again.
    return schema != SCHEMA and str(schema).rpartition("/")[0] == family and digest == manifest_digest(manifest)


def describe(file: Path) -> dict[str, Any]:
    """A file as a manifest has it."""
    content = file.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def misfit(manifest: Mapping[str, Any]) -> str:
    """Why this machine cannot run an entry, as the end of a sentence about it; empty where it can."""
    machine = manifest["machine"]
    if machine["cpu"]:
        from gtstub.toolchain.cpu import lacking  # Here, because not every entry needs to know.

        if missing := lacking(machine["cpu"]):
            return f"was built for a CPU with {_listed(missing)}, which this one lacks"
    built_for = machine["arch"]
    if built_for.startswith(("sm_", "gfx")):
        from gtstub.toolchain.arch import arch  # Here, because only programs for a GPU need to ask for it.

        if (found := arch("gpu")) not in ("", built_for):
            return f"was built for '{built_for}', but the GPU here is '{found}'"
    return ""


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def check_baked(path: Path, manifest: Mapping[str, Any], baked: Mapping[str, Any]) -> None:
    """Raises CacheError where a value was compiled in that is not the one in `baked`, whose other values are free."""
    compiled_in = manifest["baked"]
    for name, value in baked.items():
        if name in compiled_in and canonical(compiled_in[name]) != canonical(plain(value)):
            raise CacheError(
                f"The cache entry '{path}' has {name} = {json.dumps(compiled_in[name])} compiled in,"
                f" but is wanted with {name} = {json.dumps(plain(value))}: build it for that value,"
                " or leave it to run time."
            )


def mark_used(path: Path) -> None:
    """Notes at most once a day that an entry was used, as the time of its directory; a shared layer is left alone."""
    layers = filter(None, os.environ.get("GTSTUB_SHARED_CACHE_DIR", "").split(os.pathsep))
    if any(path.is_relative_to(Path(layer).absolute()) for layer in layers):
        return
    try:
        if abs(time.time() - path.stat().st_mtime) > DAY:
            os.utime(path)
    except OSError:
        pass  # It may be another user's, and is used all the same.
