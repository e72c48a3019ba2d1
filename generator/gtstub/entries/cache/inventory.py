"""The inventory of a cache: every entry with its size, its age and its state."""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gtstub.entries.cache.entry import Entry, is_entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub.entries.cache.store import Cache


@dataclasses.dataclass(frozen=True)
class Item:
    """
    An entry, whole or not. `bytes` is the size of its files. `built` and `used` are times in seconds since 1970; `used`
    is exact to the hour, and unknown in a shared layer. The state 'broken' has a `problem`; 'foreign' means that
    another version of gtstub made the entry. Only an entry that is ok has a manifest, which is read when it is first
    needed.
    """

    entry: Entry
    bytes: int
    used: float

    @functools.cached_property
    def _read(self) -> Manifest | CacheError:
        try:
            return self.entry.manifest()
        except CacheError as error:
            return error

    @property
    def manifest(self) -> Manifest | None:
        return self._read if isinstance(self._read, Manifest) else None

    @property
    def problem(self) -> str:
        return str(self._read) if isinstance(self._read, CacheError) else ""

    @functools.cached_property
    def state(self) -> Literal["ok", "broken", "foreign"]:
        if self.manifest is not None:
            return "ok"
        return "foreign" if self.entry.is_foreign() else "broken"

    @property
    def name(self) -> str:
        return self.manifest.name if self.manifest is not None else self.key.rpartition("-")[0] or self.key

    @property
    def built(self) -> float:
        return self.manifest.built.time if self.manifest is not None else self.used

    @property
    def static(self) -> dict[str, Any]:
        """The values of the static arguments, by parameter."""
        if self.manifest is None:
            return {}
        names = self.manifest.ingredients.get("static")
        if not isinstance(names, dict):
            return {}
        return {name: value for name, value in self.manifest.baked.items() if name in names}

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def path(self) -> Path:
        return self.entry.path

    @property
    def layer(self) -> Path:
        return self.entry.path.parent


def inventory(cache: Cache) -> list[Item]:
    """All entries of a cache, layer by layer. Compares only the sizes of files; `Entry.verify` reads them."""
    return [item for entry in cache.entries() if (item := _item(entry)) is not None]


def code_paths(layer: Path) -> list[str]:
    """The subdirectories of a layer that are caches of ranks which run different code."""
    try:
        inner = [path for path in layer.iterdir() if path.is_dir() and not is_entry(path)]
        return sorted(path.name for path in inner if any(map(is_entry, path.iterdir())))
    except OSError:
        return []


def age(seconds_since_1970: float) -> float:
    """Seconds since a time; 0 for a time in the future, which a clock that was set back can cause."""
    return max(0.0, time.time() - seconds_since_1970)


def _item(entry: Entry) -> Item | None:
    try:
        used = entry.path.stat().st_mtime
        size = sum(file.lstat().st_size for file in entry.path.iterdir())
    except OSError:  # Another process has just removed it.
        return None
    return Item(entry, size, used)
