"""
Copies of one block of memory, for which DaCe calls memcpy (libraries/standard/nodes/copy/select.py). C++ takes a
negative number of elements for a huge one, while a map over them has no round.
"""

from __future__ import annotations

from collections.abc import Sequence

from gtstub.stub.sdfg.model import Container, Subset
from gtstub.stub.signature.expressions import polynomial

_STORAGES = ("Default", "CPU_Heap", "CPU_Pinned", "CPU_ThreadLocal")


def is_block(source: Container, read: Subset | None, destination: Container, written: Subset | None) -> bool:
    """Whether DaCe copies a block from one part to another in a map of several threads. None is all of a container."""
    sides = ((source, read), (destination, written))
    if source.dtype != destination.dtype or len(source.shape) != len(destination.shape):
        return False
    if any(each.storage not in _STORAGES or each.kind not in ("Array", "Scalar") for each, _ in sides):
        return False
    return any(all(_is_dense(*side, axes) for side in sides) for axes in _orders(len(source.shape)))


def _orders(rank: int) -> Sequence[Sequence[int]]:
    """The axes in the two orders of memory, the innermost first."""
    return tuple(reversed(range(rank))), tuple(range(rank))


def _is_dense(container: Container, part: Subset | None, axes: Sequence[int]) -> bool:
    """Whether the container has no gaps with its axes in this order, and neither has a part of it."""
    stride = "1"
    for axis in axes:
        if not _is_same(container.strides[axis], stride):
            return False
        stride = f"({stride})*({container.shape[axis]})"
    if part is None:
        return True
    if part.ends is None or len(part.ends) != len(axes):
        return False
    is_whole = True
    for axis in axes:
        first, last = part.ends[axis]
        if not is_whole and first != last:
            return False
        is_whole = is_whole and _is_same(f"({last}) + 1 - ({first})", container.shape[axis])
    return True


def _is_same(a: str, b: str) -> bool:
    return a == b or ((found := polynomial(a)) is not None and found == polynomial(b))
