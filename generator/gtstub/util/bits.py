"""
Arrays of numpy and CuPy, compared bit for bit: NaN equals itself, and 0.0 is not -0.0. Objects in an array are compared
by what they are, and numbers and texts of Python by their type and value.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any


def differences(array: Any, other: Any) -> tuple[Any, Any, Any]:
    """Which elements of two arrays differ in their bits, in C order, and both arrays in host memory."""
    import numpy as np

    found, wanted = map(in_host_memory, (array, other))
    if found.dtype.hasobject:
        pairs = zip(_keys(found), _keys(wanted), strict=True)
        return np.fromiter((one != other for one, other in pairs), np.bool_, found.size), found, wanted
    size = found.dtype.itemsize
    differ = (found.view(np.uint8).reshape(-1, size) != wanted.view(np.uint8).reshape(-1, size)).any(axis=1)
    return differ, found, wanted


@dataclasses.dataclass(frozen=True)
class Difference:
    """The elements at which two arrays differ, as a text, and the first of them in both."""

    elements: str
    value: str
    expected: str


def first_difference(array: Any, expected: Any) -> Difference | None:
    """How an array differs from what is expected; None if it has the same bits."""
    import numpy as np

    differ, found, wanted = differences(array, expected)
    count = int(differ.sum())
    if count == 0:
        return None
    index = tuple(int(each) for each in np.unravel_index(int(differ.argmax()), found.shape))
    return Difference(f"{count} of {found.size} elements, first at {index}", f"{found[index]!s}", f"{wanted[index]!s}")


def digest(array: Any) -> str:
    """A digest of the elements in C order, hexadecimal."""
    import numpy as np

    values = in_host_memory(array)
    data = repr(list(_keys(values))).encode() if values.dtype.hasobject else values.view(np.uint8)
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _keys(array: Any) -> Iterator[Any]:
    """What each element of an array with objects is, or has in its members."""
    return map(_key, array.ravel().tolist())


def _key(value: Any) -> Any:
    if type(value) in (bool, int, float, complex, str, bytes):
        return type(value).__name__, repr(value)
    return tuple(map(_key, value)) if type(value) is tuple else id(value)


def in_host_memory(array: Any) -> Any:
    """The elements as a contiguous array of numpy."""
    import numpy as np

    return np.ascontiguousarray(array.get() if hasattr(array, "get") else array)
