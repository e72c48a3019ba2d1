"""
Arrays in guarded memory, of which each element (or each row, if the stride of an axis must be 1) has pages of its own.

An array has exactly the elements of a box. The pages of all others are taken away. `accesses` tells which of those a
call accesses; the call itself continues, because it gets the pages back.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import itertools
import math
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.support.checkout import ROOT

PAGE = 4096
MOST_ACCESSES = 1 << 16
SOURCE = ROOT / "tests" / "bounds" / "guard.c"
RUNTIME = ROOT / "runtime"

Box = tuple[tuple[int, int], ...]
"""The start and the stop of each axis."""

Index = tuple[int, ...]
Side = Literal["start", "end"]


class Memory:
    """Memory for guarded arrays, which lie one after another."""

    def __init__(self, size: int) -> None:
        self._library = _library()
        self._size = size
        self._pages = self._library.guard_reserve(size, MOST_ACCESSES)
        assert self._pages, "the memory could not be reserved"
        self._begin: int = self._library.guard_address(self._pages)
        self._next = self._begin
        self._noted = (ctypes.c_size_t * MOST_ACCESSES)()
        self._arrays: list[GuardedArray] = []

    def close(self) -> None:
        self._library.guard_release(self._pages)

    def array(self, name: str, values: NDArray[Any], origin: Index, unit_axis: int | None) -> GuardedArray:
        """An array that has no elements yet; its elements get the values at the same index in `values`."""
        layout = _layout(values, unit_axis)
        begin = self._next
        self._next += layout.size + PAGE
        assert self._next <= self._begin + self._size, "the memory is too small"
        self._arrays.append(GuardedArray(self._library, name, begin, values, origin, layout))
        return self._arrays[-1]

    @contextlib.contextmanager
    def accesses(self) -> Iterator[dict[str, set[Index]]]:
        """Collects the indices of the elements that are accessed and that arrays do not have, by array."""
        found: dict[str, set[Index]] = {}
        self._library.guard_begin(self._pages)
        try:
            yield found
        finally:
            count = self._library.guard_end(self._pages, self._noted)
            assert count <= MOST_ACCESSES
            for address in self._noted[:count]:
                name, index = self._find(address)
                found.setdefault(name, set()).add(index)

    def _find(self, address: int) -> tuple[str, Index]:
        for array in self._arrays:
            if array.begin <= address < array.begin + array.layout.size:
                return array.name, array.index_at(address)
        return "", ()


@dataclasses.dataclass(frozen=True)
class Layout:
    """`strides` in bytes, `pads` in elements (bytes for the axis of stride 1), for an array of `size` bytes."""

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    size: int
    unit_axis: int | None
    row_axis: int


def _layout(values: NDArray[Any], unit_axis: int | None) -> Layout:
    rank = values.ndim
    order = [axis for axis in range(rank) if axis != unit_axis]
    pads = [8 if rank < 3 else 3] * rank
    strides = [0] * rank
    step = PAGE
    if unit_axis is not None:
        strides[unit_axis], pads[unit_axis] = values.itemsize, PAGE
        step = (values.shape[unit_axis] * values.itemsize // PAGE + 4) * PAGE
    for axis in reversed(order):
        strides[axis] = step
        step *= values.shape[axis] + 2 * pads[axis]
    return Layout(tuple(strides), tuple(pads), step, unit_axis, unit_axis if unit_axis is not None else rank - 1)


class GuardedArray:
    """An array whose elements change; `box` has those that it has."""

    def __init__(
        self,
        library: ctypes.CDLL,
        name: str,
        begin: int,
        values: NDArray[Any],
        origin: Index,
        layout: Layout,
    ) -> None:
        self._library = library
        self.name, self.begin, self.values, self.origin, self.layout = name, begin, values, origin, layout
        self.box: Box = ()
        self._shift = 0

    def open(self, box: Box, side: Side = "end") -> NDArray[Any]:
        """The array with the elements of `box`. Rows of stride 1 end where a page ends, or start where one starts."""
        self.box = box
        unit = self.layout.unit_axis
        if unit is not None:
            start, stop = box[unit]
            edge = (stop if side == "end" else start) - self.origin[unit]
            self._shift = -edge * self.values.itemsize % PAGE
        rows = self._rows()
        row = self._row_bytes() if len(rows) else 0
        assert self._library.guard_open(
            self.begin, self.layout.size, rows.ctypes.data_as(ctypes.c_void_p), len(rows), row
        )
        array = self._view()
        array[...] = self.values[self._slices()]
        return array

    def close(self) -> None:
        """Takes all elements away; the array that `open` returned stays as it is."""
        assert self._library.guard_open(self.begin, self.layout.size, None, 0, 0)

    def index_at(self, address: int) -> Index:
        """The index of the element at an address."""
        left = address - self.begin
        index = [0] * self.values.ndim
        for axis in sorted(range(self.values.ndim), key=lambda axis: -self.layout.strides[axis]):
            if axis == self.layout.unit_axis:
                left -= self.layout.pads[axis] + self._shift
                index[axis] = left // self.layout.strides[axis] + self.origin[axis]
            else:
                steps, left = divmod(left, self.layout.strides[axis])
                index[axis] = steps - self.layout.pads[axis] + self.origin[axis]
        return tuple(index)

    def _address(self, index: Sequence[int]) -> int:
        address = self.begin + self._shift
        for axis, each in enumerate(index):
            stride, pad = self.layout.strides[axis], self.layout.pads[axis]
            address += (each - self.origin[axis]) * stride + (pad if axis == self.layout.unit_axis else pad * stride)
        return address

    def _rows(self) -> NDArray[np.uintp]:
        if math.prod(stop - start for start, stop in self.box) == 0:
            return np.zeros(0, np.uintp)
        ends = [
            (start,) if axis == self.layout.row_axis else range(start, stop)
            for axis, (start, stop) in enumerate(self.box)
        ]
        return np.array([self._address(index) for index in itertools.product(*ends)], np.uintp)

    def _row_bytes(self) -> int:
        start, stop = self.box[self.layout.row_axis]
        return (stop - start) * self.layout.strides[self.layout.row_axis]

    def _view(self) -> NDArray[Any]:
        shape = tuple(stop - start for start, stop in self.box)
        memory = (ctypes.c_byte * 1).from_address(self._address([start for start, _ in self.box]))
        whole = np.frombuffer(memory, np.uint8, 1)
        first = np.lib.stride_tricks.as_strided(whole, (self.values.itemsize,), (1,)).view(self.values.dtype)
        return np.lib.stride_tricks.as_strided(first, shape, self.layout.strides)

    def _slices(self) -> tuple[slice, ...]:
        pairs = zip(self.box, self.origin, strict=True)
        return tuple(slice(start - origin, stop - origin) for (start, stop), origin in pairs)


@functools.cache
def _library() -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="gtstub-guard-"))
    output = folder / "guard.so"
    command = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-pthread", "-o", str(output)]
    includes = (f"-I{RUNTIME}", f"-I{RUNTIME / 'include'}")
    sources = (SOURCE, RUNTIME / "observers" / "debug" / "pages.c", RUNTIME / "base" / "new.c")
    subprocess.run([*command, *includes, *map(str, sources)], check=True)
    library = ctypes.CDLL(str(output))
    address, size = ctypes.c_void_p, ctypes.c_size_t
    library.guard_reserve.restype, library.guard_reserve.argtypes = address, (size, size)
    library.guard_address.restype, library.guard_address.argtypes = size, (address,)
    library.guard_release.restype, library.guard_release.argtypes = None, (address,)
    library.guard_open.restype, library.guard_open.argtypes = ctypes.c_bool, (size, size, address, size, size)
    library.guard_begin.restype, library.guard_begin.argtypes = None, (address,)
    library.guard_end.restype, library.guard_end.argtypes = size, (address, address)
    return library
