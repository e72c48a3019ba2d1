"""Removes entries from a cache: those unused for a long time, and those that exceed a maximum size of the cache."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from gtstub import settings
from gtstub.entries.cache.cleanup import set_aside
from gtstub.entries.cache.entry import USE_KNOWN
from gtstub.entries.cache.inventory import Item, age, inventory
from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub.entries.cache.store import Cache

LIMITED = ".limited"
"""A file in the root of a cache. Its modification time is that of the last `limit_size`."""

DAY = 24 * 60 * 60

IN_USE = 2 * DAY
"""Seconds for which an entry counts as in use."""


def unwanted(items: Iterable[Item], older_than: float | None = None, max_size: float | None = None) -> list[Item]:
    """
    The entries not used for `older_than` seconds, and the least recently used ones beyond `max_size` bytes. An entry
    may have been used up to `USE_KNOWN` after its last use on record.
    """
    found, kept = [], 0
    for item in sorted(items, key=lambda item: age(item.used)):  # the most recently used first
        is_old = older_than is not None and age(item.used) > older_than + USE_KNOWN
        if is_old or (max_size is not None and kept + item.bytes > max_size):
            found.append(item)
        else:
            kept += item.bytes
    return found


def remove(cache: Cache, item: Item) -> bool:
    """
    Moves an entry into a private directory, then removes it. False if it no longer exists or was just used. Of a link
    to an entry, only the link is removed; it is not moved, because a relative one would lead nowhere.
    """
    with cache.private_directory(item.key) as private:
        try:
            if item.path.is_symlink():
                if is_unused := item.path.stat().st_mtime == item.used:
                    item.path.unlink()
                return is_unused
            aside = set_aside(item.path, private)
            if aside.stat().st_mtime != item.used:
                return False
            aside.rename(private / "removed")  # From here on, the entry does not go back.
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CacheError(f"The cache entry '{item.path}' cannot be removed: {error.strerror}.") from error
        return True


def limit_size(cache: Cache) -> None:
    """
    Removes the least recently used entries of the cache's root beyond `settings.cache_max_size`, but none that is in
    use. Prints on stderr what it removed, or that the entries in use are too large. Does nothing if the last time was
    less than a day ago, because measuring a large cache takes long.
    """
    max_size, mark = settings.cache_max_size(), cache.root / LIMITED
    with suppress(OSError):
        if abs(time.time() - mark.stat().st_mtime) < DAY:
            return
    with suppress(OSError, CacheError):  # The program is built. A later process tries again.
        mark.touch(0o644)
        items = inventory(dataclasses.replace(cache, shared=()))
        beyond = unwanted(items, max_size=max_size)
        removed = [item for item in beyond if age(item.used) > IN_USE and remove(cache, item)]
        _report(cache, max_size, removed, sum(item.bytes for item in items) - sum(item.bytes for item in removed))


def _report(cache: Cache, max_size: float, removed: Sequence[Item], kept: int) -> None:
    limit = f"its maximum size of {max_size / 2**20:.1f} MiB ({settings.CACHE_MAX_SIZE})"
    if removed:
        days = min(age(item.used) for item in removed) / DAY
        count = "1 entry" if len(removed) == 1 else f"{len(removed)} entries"
        text = f"removed {count}, not used for {days:.0f} days or more, from the cache '{cache.root}'"
        print(f"gtstub: {text} because of {limit}.", file=sys.stderr)
    if kept > max_size:
        text = f"the entries of the cache '{cache.root}' that were used in the last two days exceed {limit}"
        print(f"gtstub: {text}: {kept / 2**20:.1f} MiB. They stay.", file=sys.stderr)
