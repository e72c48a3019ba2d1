"""Calls of DaCe programs through gtstub, compared with DaCe's own calls of the same programs on copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dace
import numpy as np
from dace.codegen.compiled_sdfg import CompiledSDFG


def copied(value: Any) -> Any:
    """A copy of an array has the same strides; other values are not copied."""
    if not isinstance(value, np.ndarray):
        return value
    made = np.lib.stride_tricks.as_strided(np.zeros(1 + _extent(value), value.dtype), value.shape, value.strides)
    made[...] = value
    return made


def check_like_dace(program: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `program` both ways: the arguments must be the same afterwards, and the results as well."""
    ours, theirs = [copied(each) for each in args], [copied(each) for each in args]
    our_names = {name: copied(value) for name, value in kwargs.items()}
    their_names = {name: copied(value) for name, value in kwargs.items()}
    found = program(*ours, **our_names)
    check_same(found, program.dace_program(*theirs, **their_names))
    check_same(ours, theirs)
    check_same(list(our_names.values()), list(their_names.values()))
    return found


def by_dace(program: Any, sdfg: dace.SDFG) -> Callable[..., Any]:
    """DaCe's own call of the library that gtstub has built for a program."""
    ((_, made),) = program._variants
    (library,) = made.entry.path.glob("lib*.so")
    compiled = CompiledSDFG(sdfg, _Library(library), program.dace_program.argnames)

    def call(**arguments: Any) -> Any:
        return compiled(**program.dace_program._create_sdfg_args(sdfg, (), arguments))

    return call


def check_same(found: Any, expected: Any) -> None:
    """Types, shapes, and each bit."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    else:
        assert found is expected or (type(found) is type(expected) and found == expected)


def _extent(array: Any) -> int:
    """Elements after the first one."""
    return sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)) // array.itemsize


class _Library:
    """A library for DaCe's own calls, in place of DaCe's class, which needs a second library for each one."""

    def __init__(self, path: Path) -> None:
        self._library_filename, self._library = str(path), ctypes.CDLL(str(path))

    def load(self) -> None:
        pass

    def unload(self) -> None:
        pass

    def get_symbol(self, name: str, restype: Any = ctypes.c_int) -> Any:
        try:
            function = self._library[name]
        except AttributeError as error:
            raise KeyError(name) from error
        function.restype = restype
        return function
