"""The memory of arrays: where it is, which arrays share it, and which are sections of others. On the CPU alone."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gtstub.granule.description import Section
from gtstub.signature.dtypes import DType

MOST_WORK = 100_000
"""What numpy may try to find out whether two arrays share an element. In doubt they do."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """An array in memory: the address of its first element, and sizes and strides in elements."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Layout:
        size = array.dtype.itemsize
        return cls(array.ctypes.data, str(array.dtype), array.shape, tuple(stride // size for stride in array.strides))  # type: ignore[arg-type]

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def has_elements(self) -> bool:
        return all(size > 0 for size in self.shape)

    @property
    def extent(self) -> tuple[int, int]:
        """The addresses of the first byte, and of the one after the last."""
        reach = [(size - 1) * stride * self.itemsize for size, stride in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(each for each in reach if each < 0)
        return low, self.address + sum(each for each in reach if each > 0) + self.itemsize

    @property
    def bytes(self) -> int:
        """From the first byte to the last, with those between elements."""
        low, high = self.extent
        return high - low if self.has_elements else 0

    def over(self, memory: Any) -> npt.NDArray[Any]:
        """The array with this layout in other memory: a buffer of `bytes` bytes."""
        low, _ = self.extent
        strides = tuple(stride * self.itemsize for stride in self.strides)
        return np.ndarray(self.shape, self.dtype, memory, self.address - low if self.bytes else 0, strides)

    def array(self) -> npt.NDArray[Any]:
        """The elements themselves, not a copy. Whoever owns the memory must keep it."""
        low, _ = self.extent
        return self.over((ctypes.c_char * self.bytes).from_address(low) if self.bytes else bytearray())

    def raw(self) -> npt.NDArray[np.uint8]:
        """All bytes from the first to the last, with zeros between elements."""
        copy = np.zeros(self.bytes, np.uint8)
        self.over(copy)[...] = self.array()
        return copy

    def overlaps(self, other: Layout) -> bool:
        if not (self.has_elements and other.has_elements):
            return False
        try:
            return bool(np.shares_memory(self.array(), other.array(), max_work=MOST_WORK))
        except np.exceptions.TooHardError:
            return True


def section_of(part: Layout, whole: Layout) -> Section | None:
    """How an array is a section of another one along its axes; None if it is none, or has elements outside of it."""
    size = whole.itemsize
    if part.dtype != whole.dtype or not (part.has_elements and whole.has_elements) or min(whole.strides, default=1) < 0:
        return None
    distance, rest = divmod(part.address - whole.address, size)
    first = _indices(distance, whole) if rest == 0 and distance >= 0 else None
    if first is None:
        return None
    low, high = list(first), list(first)
    axes, steps = [], []
    for count, stride in zip(part.shape, part.strides, strict=True):
        axis, step = _axis_of(stride, count, whole)
        if axis is None:
            return None
        reach = (count - 1) * step
        low[axis] += min(reach, 0)
        high[axis] += max(reach, 0)
        axes.append(axis)
        steps.append(step)
    if any(index < 0 for index in low) or any(index >= n for index, n in zip(high, whole.shape, strict=True)):
        return None
    return Section(part.shape, tuple(axes), tuple(steps), first)


def _by_stride(whole: Layout) -> Iterator[int]:
    """The axes with more than one element, longest stride first."""
    axes = (axis for axis, size in enumerate(whole.shape) if size > 1)
    return iter(sorted(axes, key=lambda axis: -whole.strides[axis]))


def _indices(distance: int, whole: Layout) -> tuple[int, ...] | None:
    """The indices of the element at this distance from the first one, in elements."""
    indices = [0] * len(whole.shape)
    for axis in _by_stride(whole):
        if whole.strides[axis] > 0:
            indices[axis] = min(distance // whole.strides[axis], whole.shape[axis] - 1)
            distance -= indices[axis] * whole.strides[axis]
    return tuple(indices) if distance == 0 else None


def _axis_of(stride: int, count: int, whole: Layout) -> tuple[int | None, int]:
    """The axis of an array that a section moves along with a stride, and the step there."""
    if count == 1:
        same = (axis for axis, each in enumerate(whole.strides) if each == stride)
        return next(same, 0), 1 if stride in whole.strides else 0
    for axis in _by_stride(whole):
        each = whole.strides[axis]
        if each > 0 and stride % each == 0 and abs(stride // each) * (count - 1) < whole.shape[axis]:
            return axis, stride // each
    return None, 0
