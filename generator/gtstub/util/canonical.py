"""
Conversion of values to the JSON of a cache entry, and the texts of documents: for digests, and for readers.

Every process that loads an entry imports this module, so it imports little itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from typing import Any


def canonical(document: Any) -> bytes:
    """The canonical text of a document of JSON values."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


WIDTH = 120
"""Characters of a line of `readable`."""


def readable(document: Any) -> str:
    """The text of a document of JSON values, sorted by names, in which whatever fits on a line is on one line."""
    return _readable(document, 0, 0) + "\n"


def _readable(value: Any, depth: int, used: int) -> str:
    """`used` is the length of what stands before and behind the value on its line."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    if depth + used + len(text) <= WIDTH or not isinstance(value, dict | list) or not value:
        return text
    if isinstance(value, dict):
        names = {name: json.dumps(name, ensure_ascii=False) + ": " for name in sorted(value)}
        items = [text + _readable(value[name], depth + 1, len(text) + 1) for name, text in names.items()]
    else:
        items = [_readable(item, depth + 1, 1) for item in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n" + ",\n".join(" " * (depth + 1) + item for item in items) + f"\n{' ' * depth}{end}"


def sha256(data: bytes) -> str:
    """The SHA-256 of bytes, hexadecimal."""
    import hashlib  # Here, because OpenSSL takes 4 MB, which commands that compute no digest do not need.

    return hashlib.sha256(data).hexdigest()


def plain(value: Any) -> Any:
    """
    A value as a manifest holds it. Tuples become lists, sets become sorted lists, numpy scalars become Python
    scalars, infinities and NaN become text, as in the program signature, and so do complex numbers. Raises TypeError
    for any other type.
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
        case complex():
            return str(complex(value))
    if hasattr(value, "item"):
        return plain(value.item())
    raise TypeError(f"'{type(value).__name__}' cannot be part of the manifest of a cache entry.")
