"""Arrays of numpy and CuPy, compared bit for bit: NaN equals itself, and 0.0 is not -0.0."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any


def differences(array: Any, other: Any) -> tuple[Any, Any, Any]:
    """Which elements of two arrays differ in their bits, in C order, and both arrays in host memory."""
    import numpy as np

    found, wanted = map(in_host_memory, (array, other))
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

    return hashlib.blake2b(in_host_memory(array).view(np.uint8), digest_size=16).hexdigest()


def in_host_memory(array: Any) -> Any:
    """The elements as a contiguous array of numpy."""
    import numpy as np

    return np.ascontiguousarray(array.get() if hasattr(array, "get") else array)
