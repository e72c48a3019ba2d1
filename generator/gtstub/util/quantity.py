"""Durations and sizes, as command lines and environment variables name them, and as tables show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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


def as_size(count: float) -> str:
    """A number of bytes with a unit, such as '12.5 MiB'."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= SIZES[unit]:
            return f"{count / SIZES[unit]:.1f} {unit}"
    return f"{count:.0f} B"


def _product(text: str, units: Mapping[str, int], kind: str, fold: Callable[[str], str] = str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    factors = {fold(unit): factor for unit, factor in units.items()}
    if found is None or fold(found[2]) not in factors:
        raise ValueError(f"'{text}' is not {kind}: a number, and one of {', '.join(filter(None, units))}.")
    return float(found[1]) * factors[fold(found[2])]
