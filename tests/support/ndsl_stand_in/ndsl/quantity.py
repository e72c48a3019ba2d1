"""Stand-in for ndsl.quantity; see the package."""

from __future__ import annotations

import dataclasses
from typing import Any

import dace
import numpy as np


class Quantity:
    """An array with dimensions and units, which DaCe takes for an array by `__descriptor__`."""

    def __init__(self, data: np.ndarray, dims: tuple[str, ...], units: str) -> None:
        self._data = data
        self.dims = dims
        self.units = units

    @property
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, data: np.ndarray) -> None:
        self._data = data

    def swap_buffer(self, data: np.ndarray) -> None:
        self._data = data

    @property
    def field(self) -> np.ndarray:
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._data.__array_interface__

    def __descriptor__(self) -> dace.data.Data:
        return dace.data.create_datadescriptor(self._data)


class Local(Quantity):
    """A Quantity that no other object uses, which the SDFG may allocate itself."""

    def __descriptor__(self) -> dace.data.Data:
        descriptor = super().__descriptor__()
        descriptor.transient = True
        return descriptor


@dataclasses.dataclass
class State:
    """The base of dataclasses of Quantities and States."""

    def _hash(self) -> int:
        found = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return hash(tuple(each._hash() if isinstance(each, State) else address(each) for each in found))


def address(value: Any) -> Any:
    interface = getattr(value, "__array_interface__", None)
    return value if interface is None else interface["data"][0]
