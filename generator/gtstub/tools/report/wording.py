"""Numbers and digests as texts of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gtstub.tools.memory.memory import Allocation

WHEN: Mapping[Allocation, str] = {
    "init": "kept between calls",
    "call": "in each call",
    "caller": "lent by the caller",
    "stack": "on the stack",
    "none": "not allocated",
}
"""When memory is allocated."""

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count(number: int, one: str, many: str = "") -> str:
    """`1 kernel`, `2 kernels`; `many` is the plural if it does not end in an s alone."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def byte_size(size: int) -> str:
    """`520 B`, `1.91 MiB`: three digits."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{value:#.3g}".rstrip(".") + f" {UNITS[unit]}"


def short_digests(text: str) -> str:
    """A text in which twelve digits stand for each SHA-256: enough to compare two pages."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1…", text)
