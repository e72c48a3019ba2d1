"""
Values as the JSON of a cache entry has them, and the one text of each document: what digests are made of.

Imported wherever an entry is loaded: it must stay as light as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from typing import Any


def canonical(document: Any) -> bytes:
    """The one text of a document that is made of what JSON has."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any) -> Any:
    """
    A value as a manifest has it: tuples are lists, sets are sorted, numpy's scalars are Python's, infinities and NaN
    are text as in the program signature. Raises TypeError for what JSON has no word for.
    """
    match value:
        case None | bool() | str():
            return value
        case Mapping():
            return {str(name): plain(element) for name, element in value.items()}
        case list() | tuple():
            return [plain(element) for element in value]
        case Set():
            return sorted(map(plain, value), key=canonical)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
    if hasattr(value, "item"):
        return plain(value.item())
    raise TypeError(f"'{type(value).__name__}' cannot stand in the manifest of a cache entry.")
