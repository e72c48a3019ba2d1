"""The compiled C file of a granule, through ctypes: what a C host does, for the verification."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gtstub.abi import MAX_RANK
from gtstub.errors import GranuleError
from gtstub.programs.granule.description import Description, GranuleScalar, GranuleStep
from gtstub.programs.layout import Layout
from gtstub.stub.signature.dtypes import DTYPES, NUMBERS
from gtstub.tools.recorded.runtime import Array, refusal, runtime

Function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))


type HookFunction = Callable[[Any, Any], int]
"""Gets the data of the hook, and its arrays."""


class Hook(ctypes.Structure):
    """`gts_hook`."""

    _fields_ = (("function", Function), ("data", ctypes.c_void_p))


class Complex64(ctypes.Structure):
    """`gts_complex64`."""

    _fields_ = (("real", ctypes.c_float), ("imaginary", ctypes.c_float))


class Complex128(ctypes.Structure):
    """`gts_complex128`."""

    _fields_ = (("real", ctypes.c_double), ("imaginary", ctypes.c_double))


COMPLEX: Mapping[str, Any] = {"complex64": Complex64, "complex128": Complex128}


MAP_FIXED = 0x10
"""Of Linux, on all machines that gtstub knows."""

_mmap = ctypes.CDLL(None).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)


class Library:
    """A granule that was opened. Errors of the runtime become GranuleError."""

    def __init__(self, library: Path, description: Description, folder: Path) -> None:
        self._description = description
        runtime()  # The library finds the one that was loaded.
        self._library = ctypes.CDLL(str(library))
        self._handle = ctypes.c_void_p()
        self._kept: list[Any] = []
        self._check(self._function("open")(str(folder).encode(), ctypes.byref(self._handle)))

    def close(self) -> None:
        runtime().gts_granule_close(ctypes.byref(self._handle))

    def bind(self, arguments: Mapping[str, npt.NDArray[Any]], hooks: Mapping[str, HookFunction]) -> None:
        """The arrays must live until the granule is closed."""
        given = (Array * max(1, len(self._description.arguments)))()
        for number, argument in enumerate(self._description.arguments):
            given[number] = _array(arguments[argument.name])
        functions = [Function(hooks[name]) for name in self._description.hooks]
        of_host = (Hook * max(1, len(functions)))(*(Hook(each, None) for each in functions))
        self._kept = [arguments, functions]
        # struct <name>_arguments is the arrays and then the index base, which is 0.
        memory = ctypes.create_string_buffer(bytes(given) + bytes(16))
        begin = ctypes.addressof(memory) + -ctypes.addressof(memory) % 16
        ctypes.memmove(begin, bytes(given), ctypes.sizeof(given))
        more = (of_host,) if functions else ()
        self._check(self._function("bind")(self._handle, ctypes.c_void_p(begin), *more))

    def run(self, step: GranuleStep) -> None:
        """Runs a step with the scalars of the export."""
        scalars = [self._description.scalars[each] for each in step.scalars]
        values = [_scalar(each) for each in scalars]
        self._check(self._function(step.name)(self._handle, *values))

    def array(self, name: str) -> npt.NDArray[Any]:
        """The elements of an array as they are now, not a copy."""
        found = Array()
        self._check(runtime().gts_granule_array(self._handle, name.encode(), ctypes.byref(found)))
        shape, strides = tuple(found.shape[: found.rank]), tuple(found.strides[: found.rank])
        return Layout(found.data, DTYPES[found.dtype - 1], shape, strides).array()

    def writable_array(self, name: str) -> npt.NDArray[Any]:
        """The same. A kept array that no step writes is a part of a file: its pages become memory of this process."""
        array = self.array(name)
        if any(each.name == name and not (each.is_argument or each.written) for each in self._description.arrays):
            low, high = Layout.of(array).extent
            begin, end = low // mmap.PAGESIZE * mmap.PAGESIZE, -(-high // mmap.PAGESIZE) * mmap.PAGESIZE
            content = ctypes.string_at(begin, end - begin)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
            if _mmap(begin, end - begin, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != begin:
                raise GranuleError(f"Array '{name}' of granule '{self._description.name}' cannot be copied to memory.")
            ctypes.memmove(begin, content, end - begin)
        return array

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"{self._description.name}_{name}")

    def _check(self, status: int) -> None:
        if status != 0:
            raise GranuleError(str(refusal()))


def _scalar(scalar: GranuleScalar) -> Any:
    """A scalar as ctypes passes it: a complex number as a struct of its parts, which the ABIs do not tell apart."""
    if isinstance(scalar.value, complex):
        return COMPLEX[scalar.dtype](scalar.value.real, scalar.value.imag)
    return np.ctypeslib.as_ctypes_type(np.dtype(scalar.dtype))(scalar.value)


def _array(array: npt.NDArray[Any]) -> Array:
    size = array.dtype.itemsize
    shape, strides = [0] * MAX_RANK, [0] * MAX_RANK
    shape[: array.ndim] = array.shape
    strides[: array.ndim] = [stride // size for stride in array.strides]
    return Array(
        data=array.ctypes.data,
        dtype=NUMBERS[str(array.dtype)],
        device=1,
        rank=array.ndim,
        readonly=not array.flags.writeable,
        shape=(ctypes.c_int64 * MAX_RANK)(*shape),
        strides=(ctypes.c_int64 * MAX_RANK)(*strides),
    )
