"""What there is in a cache: every entry with its size and its age, and whether it is whole."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gtstub.cache import entry
from gtstub.cache.store import Cache, is_entry
from gtstub.errors import CacheError


@dataclasses.dataclass(frozen=True)
class Item:
    """
    An entry, whole or not. `built` and `used` are times in seconds since 1970, `used` to the day; a shared layer knows
    no use. `state` is 'ok'; 'broken', then `problem` says why; or 'foreign': of another version of gtstub.
    """

    path: Path
    layer: Path
    name: str
    bytes: int
    built: float
    used: float
    state: Literal["ok", "broken", "foreign"]
    problem: str
    manifest: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.path.name


def inventory(cache: Cache) -> list[Item]:
    """All entries of a cache, layer by layer. Files are looked at, but not read: `entry.verify` does that."""
    return [item for path in cache.entries() if (item := _item(path)) is not None]


def pick(items: list[Item], prefix: str) -> Item:
    """The one entry whose key begins with `prefix`: of one key in several layers, the one that is loaded."""
    found = [item for item in items if item.key.startswith(prefix)]
    keys = dict.fromkeys(item.key for item in found)
    if prefix in keys:
        return next(item for item in found if item.key == prefix)
    if not keys:
        raise CacheError(f"The cache has no entry '{prefix}': 'gtstub cache list' lists them.")
    if len(keys) > 1:
        raise CacheError(f"The key '{prefix}' is that of {len(keys)} entries: '{"', '".join(keys)}'.")
    return found[0]


def pick_of_program(items: list[Item], program: str) -> Item:
    """The one whole entry of a program, or the one whose key begins with `program`."""
    found: dict[str, Item] = {}
    for item in items:
        if item.name == program and item.state == "ok":
            found.setdefault(item.key, item)  # of one key in several layers, the one that is loaded
    if not found:
        return pick(items, program)
    if len(found) > 1:
        entries = sorted(found.values(), key=lambda item: item.built, reverse=True)
        lines = [f"  {item.key}: {_told_apart(item, entries)}" for item in entries]
        raise CacheError(
            f"Program '{program}' has {len(found)} entries: name one by the beginning of its key, which 'gtstub cache"
            f" show' explains.\n{'\n'.join(lines)}"
        )
    (item,) = found.values()
    return item


def code_paths(layer: Path) -> list[str]:
    """The directories in a layer that are caches themselves: those of ranks that run different code."""
    try:
        inner = [path for path in layer.iterdir() if path.is_dir() and not is_entry(path)]
        return sorted(path.name for path in inner if any(map(is_entry, path.iterdir())))
    except OSError:
        return []


def age(seconds_since_1970: float) -> float:
    """Seconds; what is of the future, because a clock went backwards, is new."""
    return max(0.0, time.time() - seconds_since_1970)


def _told_apart(item: Item, others: list[Item]) -> str:
    """When an entry was built, of which SDFG signature, and which values were compiled in that not all others have."""
    built = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item.built))
    signature = item.manifest["files"].get("sdfg.json", {}).get("sha256", "")
    baked = [
        f"{name} = {json.dumps(value)}"
        for name, value in item.manifest["baked"].items()
        if any(other.manifest["baked"].get(name) != value for other in others)
    ]
    return ", ".join([f"built {built}", *([f"SDFG signature {signature[:12]}"] if signature else []), *baked])


def _item(path: Path) -> Item | None:
    try:
        used = path.stat().st_mtime
        size = sum(file.lstat().st_size for file in path.iterdir())
    except OSError:  # It was taken away just now.
        return None
    state: Literal["ok", "broken", "foreign"] = "ok"
    problem = ""
    manifest: Mapping[str, Any] = {}
    try:
        manifest = entry.read_manifest(path)
    except CacheError as error:
        problem = str(error)
        state = "foreign" if entry.is_foreign(path) else "broken"
    name = manifest.get("name", path.name.rpartition("-")[0] or path.name)
    built = manifest["built"]["time"] if manifest else used
    return Item(path, path.parent, name, size, built, used, state, problem, manifest)
