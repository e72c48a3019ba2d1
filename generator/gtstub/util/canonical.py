"""
Conversion of values to the JSON of a cache entry, and the canonical text of a document, from which digests are made.

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
