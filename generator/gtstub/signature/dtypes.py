"""The element types of fields and scalars, with their names in C, Fortran, `struct` and serialbox."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from struct import calcsize
from typing import Literal, get_args

DType = Literal["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
"""numpy's names."""

DTYPES: tuple[DType, ...] = get_args(DType)
"""In the order of the enumeration `gts_dtype` in gtstub.h."""

INDEX: DType = "int32"
"""gt4py's type of the symbols of sizes, strides and domains."""


@dataclasses.dataclass(frozen=True)
class Names:
    """
    The names of one element type. `struct` is its code in Python's module `struct`. `fortran` is the type and its kind
    in iso_c_binding; signed integers replace unsigned ones, which Fortran does not have. `serialbox` is the TypeID of
    serialbox 2.6, which reads unsigned integers as signed ones; None if serialbox lacks the type.
    """

    c: str
    struct: str
    fortran: tuple[str, str]
    serialbox: int | None

    @property
    def size(self) -> int:
        """The size of an element in bytes."""
        return calcsize(f"={self.struct}")


NAMES: Mapping[str, Names] = {
    "bool": Names("bool", "?", ("logical", "c_bool"), 1),
    "int8": Names("int8_t", "b", ("integer", "c_int8_t"), None),
    "uint8": Names("uint8_t", "B", ("integer", "c_int8_t"), None),
    "int16": Names("int16_t", "h", ("integer", "c_int16_t"), None),
    "uint16": Names("uint16_t", "H", ("integer", "c_int16_t"), None),
    "int32": Names("int32_t", "i", ("integer", "c_int32_t"), 2),
    "uint32": Names("uint32_t", "I", ("integer", "c_int32_t"), 2),
    "int64": Names("int64_t", "q", ("integer", "c_int64_t"), 3),
    "uint64": Names("uint64_t", "Q", ("integer", "c_int64_t"), 3),
    "float32": Names("float", "f", ("real", "c_float"), 4),
    "float64": Names("double", "d", ("real", "c_double"), 5),
}


NUMBERS: Mapping[str, int] = {dtype: number for number, dtype in enumerate(DTYPES, 1)}
"""The values of `gts_dtype`, which begin at 1."""
