"""Arrays that are sections of others along their axes. On the CPU alone."""

from __future__ import annotations

from collections.abc import Iterator

from gtstub.programs.granule.description import Section
from gtstub.programs.layout import Layout


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
