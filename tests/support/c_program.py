"""A program as a C host calls it, through ctypes: the argument struct is laid out here, from the signature alone."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gtstub import _host
from gtstub.stub.signature.dtypes import NUMBERS
from gtstub.stub.signature.model import SdfgSignature
from gtstub.tools.recorded.runtime import Array, runtime
from tests.support.random_programs import FieldValue, Number

C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


def load(stub: Path, library: Path) -> ctypes.c_void_p:
    """What gts_load() makes of two libraries."""
    handle = ctypes.c_void_p()
    status = runtime().gts_load(os.fsencode(stub), os.fsencode(library), ctypes.byref(handle))
    assert status == 0, runtime().gts_last_error(None).contents.message
    return handle


def handle_of(program: _host.Program) -> ctypes.c_void_p:
    """The gts_program of a program of Python's, which no interface tells: behind the object's head and a vectorcall."""
    place = id(program) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
    return ctypes.c_void_p(ctypes.c_void_p.from_address(place).value)


@functools.cache
def encoded(dim: str) -> bytes:
    """At one address always, as a C host's names are."""
    return dim.encode()


class CProgram:
    """A loaded program; `leaves` are values of those that its SDFG takes, in program order, connectivities last."""

    def __init__(
        self, handle: ctypes.c_void_p, stub: Path, sdfg: SdfgSignature, leaves: Mapping[str, FieldValue | Number]
    ) -> None:
        self.handle = handle
        self._call = ctypes.CDLL(str(stub))[f"{sdfg.name}_call"]
        dtypes = {argument.name: argument.dtype for argument in sdfg.arguments}
        fields: list[tuple[str, Any]] = []
        end = 0
        for name, value in leaves.items():
            type_: Any = Array if isinstance(value, FieldValue) else C_TYPES[dtypes[name]]
            alignment = 16 if type_ is Array else ctypes.alignment(type_)
            start = -(-end // alignment) * alignment
            if start > end and type_ is Array:  # ctypes knows no alignment of a struct's own
                fields.append((f"before_{name}", ctypes.c_char * (start - end)))
            fields.append((name, type_))
            end = start + ctypes.sizeof(type_)
        if any(type_ is Array for _, type_ in fields) and end % 16 > 0:
            fields.append(("behind", ctypes.c_char * (-end % 16)))
        self._struct = type("Args", (ctypes.Structure,), {"_fields_": fields or [("none", ctypes.c_char)]})

    def __call__(self, values: Mapping[str, FieldValue | Number]) -> str | None:
        """None, or the error's message."""
        converted = {
            name: self._array(value) if isinstance(value, FieldValue) else value for name, value in values.items()
        }
        if self._call(self.handle, ctypes.byref(self._struct(**converted))) == 0:
            return None
        message: bytes = runtime().gts_last_error(self.handle).contents.message
        return message.decode()

    def set_workspace(self, memory: np.ndarray[Any, Any]) -> None:
        arguments = (ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.nbytes))
        assert runtime().gts_set_workspace(self.handle, b"CPU_Heap", *arguments) == 0

    def set_origin(self, argument: str, *origin: int) -> None:
        values = (ctypes.c_int64 * len(origin))(*origin)
        assert runtime().gts_set_origin(self.handle, argument.encode(), values, len(origin)) == 0

    def set_index_base(self, connectivity: str, base: int) -> None:
        assert runtime().gts_set_index_base(self.handle, connectivity.encode(), ctypes.c_int64(base)) == 0

    def unload(self) -> None:
        runtime().gts_close(ctypes.byref(self.handle))

    @staticmethod
    def _array(value: FieldValue) -> Array:
        array = Array(data=value.array.ctypes.data, dtype=NUMBERS[str(value.array.dtype)], device=1)
        array.rank = value.array.ndim
        for axis, dim in enumerate(value.dims):
            array.origin[axis] = value.get(axis, "start")
            array.shape[axis] = value.get(axis, "size")
            array.strides[axis] = value.get(axis, "stride")
            array.dims[axis] = encoded(dim)
        return array
