"""The element types of fields and scalars, with their names in C, `struct` and serialbox."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from struct import calcsize
from typing import Literal, get_args

DType = Literal[
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "float16",
    "complex64",
    "complex128",
]
"""numpy's names."""

DTYPES: tuple[DType, ...] = get_args(DType)
"""In the order of the enumeration `gts_dtype` in gtstub.h."""

STATIC_DTYPES: tuple[DType, ...] = DTYPES[: DTYPES.index("float64") + 1]
"""The types of scalars that can be compiled in, which are those of gt4py."""

COMPLEX_DTYPES: tuple[DType, ...] = ("complex64", "complex128")

SCALAR_DTYPES: tuple[DType, ...] = (*STATIC_DTYPES, *COMPLEX_DTYPES)
"""The types of scalars: DaCe passes a single float16 as a struct of its own, which C and Fortran cannot name."""

INDEX: DType = "int32"
"""gt4py's type of the symbols of sizes, strides and domains."""


@dataclasses.dataclass(frozen=True)
class Names:
    """
    The names of one element type. `struct` is its code in Python's module `struct`. `serialbox` is the TypeID of
    serialbox 2.6, which reads unsigned integers as signed ones; None if serialbox lacks the type.
    """

    c: str
    struct: str
    serialbox: int | None

    @property
    def size(self) -> int:
        """The size of an element in bytes."""
        return calcsize(f"={self.struct}")


NAMES: Mapping[str, Names] = {
    "bool": Names("bool", "?", 1),
    "int8": Names("int8_t", "b", None),
    "uint8": Names("uint8_t", "B", None),
    "int16": Names("int16_t", "h", None),
    "uint16": Names("uint16_t", "H", None),
    "int32": Names("int32_t", "i", 2),
    "uint32": Names("uint32_t", "I", 2),
    "int64": Names("int64_t", "q", 3),
    "uint64": Names("uint64_t", "Q", 3),
    "float32": Names("float", "f", 4),
    "float64": Names("double", "d", 5),
    "float16": Names("uint16_t", "e", None),
    "complex64": Names("gts_complex64", "2f", None),
    "complex128": Names("gts_complex128", "2d", None),
}


NUMBERS: Mapping[str, int] = {dtype: number for number, dtype in enumerate(DTYPES, 1)}
"""The values of `gts_dtype`, which begin at 1."""
