"""Removes entries from a cache: those unused for a long time, and those that exceed a maximum size of the cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gtstub.cache.cleanup import set_aside
from gtstub.cache.inventory import Item, age, inventory
from gtstub.cache.store import Cache
from gtstub.errors import CacheError

DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
SIZES = {"": 1, "B": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("KMGT", 1)
    for unit, base in (("", 1024), ("iB", 1024), ("B", 1000))
}


def duration(text: str) -> float:
    """The seconds of a duration such as '30d'. Raises ValueError, also for '3M', which could mean months."""
    return _product(text, DURATIONS, "a duration such as '30d'")


def size(text: str) -> float:
    """The bytes of a size such as '2GiB', in any case. Raises ValueError."""
    return _product(text, SIZES, "a size such as '2GiB'", str.lower)


def _product(text: str, units: Mapping[str, int], kind: str, fold: Callable[[str], str] = str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    factors = {fold(unit): factor for unit, factor in units.items()}
    if found is None or fold(found[2]) not in factors:
        raise ValueError(f"'{text}' is not {kind}: a number, and one of {', '.join(filter(None, units))}.")
    return float(found[1]) * factors[fold(found[2])]


def unwanted(cache: Cache, older_than: float | None = None, max_size: float | None = None) -> list[Item]:
    """
    The entries of the cache's root that were not used for `older_than` seconds, and the least recently used ones beyond
    a total size of `max_size` bytes. Ignores shared layers.
    """
    found, kept = [], 0
    for item in sorted(inventory(Cache(cache.root)), key=lambda item: age(item.used)):  # the most recently used first
        is_old = older_than is not None and age(item.used) > older_than
        if is_old or (max_size is not None and kept + item.bytes > max_size):
            found.append(item)
        else:
            kept += item.bytes
    return found


def remove(cache: Cache, item: Item) -> bool:
    """Moves an entry into a private directory, then removes it. False if it no longer exists or was just used."""
    with cache.private_directory(item.key) as private:
        try:
            aside = set_aside(item.path, private)
            if aside.stat().st_mtime != item.used:
                return False
            aside.rename(private / "removed")  # From here on, the entry does not go back.
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CacheError(f"The cache entry '{item.path}' cannot be removed: {error.strerror}.") from error
        return True
