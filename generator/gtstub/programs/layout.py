"""The memory of an array: where it is, and which other arrays share it. On the CPU alone."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any

from gtstub.stub.signature.dtypes import DType

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
        import numpy as np

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
        import numpy as np

        low, _ = self.extent
        strides = tuple(stride * self.itemsize for stride in self.strides)
        return np.ndarray(self.shape, self.dtype, memory, self.address - low if self.bytes else 0, strides)

    def array(self) -> npt.NDArray[Any]:
        """The elements themselves, not a copy. Whoever owns the memory must keep it."""
        low, _ = self.extent
        return self.over((ctypes.c_char * self.bytes).from_address(low) if self.bytes else bytearray())

    def raw(self) -> npt.NDArray[np.uint8]:
        """All bytes from the first to the last, with zeros between elements."""
        import numpy as np

        copy = np.zeros(self.bytes, np.uint8)
        self.over(copy)[...] = self.array()
        return copy

    def overlaps(self, other: Layout) -> bool:
        import numpy as np

        if not (self.has_elements and other.has_elements):
            return False
        try:
            return bool(np.shares_memory(self.array(), other.array(), max_work=MOST_WORK))
        except np.exceptions.TooHardError:
            return True
