"""Taking entries out of a cache that nobody has used for long, or that it has no room for."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """Seconds of a text as '30d'. Raises ValueError."""
    number, unit = _split(text)
    if unit not in DURATIONS:
        raise ValueError(f"'{text}' is not a time as '30d': a number, and one of {', '.join(DURATIONS)}.")
    return number * DURATIONS[unit]


def size(text: str) -> float:
    """Bytes of a text as '2GiB'. Raises ValueError."""
    number, unit = _split(text)
    for known, factor in SIZES.items():
        if known.upper() == unit.upper():
            return float(number * factor)
    raise ValueError(
        f"'{text}' is not a size as '2GiB': a number, and a unit as B, KiB, MiB, GiB, TiB, kB, MB, GB, TB."
    )


def _split(text: str) -> tuple[float, str]:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    return (float(found[1]), found[2]) if found else (0.0, "?")


def unwanted(cache: Cache, older_than: float | None = None, max_size: float | None = None) -> list[Item]:
    """
    The entries of the cache's own root that were not used for `older_than` seconds, and those that were not used for
    longest where all together have more than `max_size` bytes.
    """
    items = sorted(inventory(Cache(cache.root)), key=lambda item: age(item.used))
    return list(_unwanted(items, older_than, max_size))


def _unwanted(items: list[Item], older_than: float | None, max_size: float | None) -> Iterator[Item]:
    kept = 0
    for item in items:  # beginning with what was used last
        is_old = older_than is not None and age(item.used) > older_than
        if is_old or (max_size is not None and kept + item.bytes > max_size):
            yield item
        else:
            kept += item.bytes


def remove(cache: Cache, item: Item) -> bool:
    """Takes an entry away, first out of its place and then apart; False where it is gone, or was used just now."""
    with cache.private_directory(item.key) as private:
        try:
            aside = set_aside(item.path, private)
            if aside.stat().st_mtime != item.used:
                return False
            aside.rename(private / "removed")  # From here on it does not go back.
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CacheError(f"The cache entry '{item.path}' cannot be removed: {error.strerror}.") from error
        return True
