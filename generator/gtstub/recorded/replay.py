"""
Recorded calls, made again by the runtime: `gtstub/replay.h`, whose functions do all the work.

    with Replay(archive) as replay, open_program(entry) as program:
        for index, call in enumerate(archive.calls):
            program.replay(replay, index)
    replay.report["comparisons"]
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.errors import GtstubError
from gtstub.recorded.archive import Archive, Call, Value
from gtstub.signature.model import DTYPES
from gtstub.toolchain.compiler import RUNTIME

if TYPE_CHECKING:
    import numpy as np

MAX_RANK = 6


class _Error(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("message", ctypes.c_char * 1024))


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_uint, 16),
        ("device", ctypes.c_uint, 16),
        ("rank", ctypes.c_int16),
        ("readonly", ctypes.c_bool),
        ("origin", ctypes.c_int64 * MAX_RANK),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("dims", ctypes.c_char_p * MAX_RANK),
    )


@functools.cache
def _runtime() -> ctypes.CDLL:
    library = ctypes.CDLL(str(RUNTIME))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("gts_open", ctypes.c_int, (text, pointer)),
        ("gts_close", None, (pointer,)),
        ("gts_name", text, (pointer,)),
        ("gts_last_error", ctypes.POINTER(_Error), (pointer,)),
        ("gts_replay_open", ctypes.c_int, (text, pointer)),
        ("gts_replay_is_of", ctypes.c_bool, (pointer, size, pointer)),
        ("gts_replay_tolerate", ctypes.c_int, (pointer, text, ctypes.c_uint64)),
        ("gts_replay_call", ctypes.c_int, (pointer, size, pointer)),
        ("gts_replay_compare", ctypes.c_int, (pointer, size, text, ctypes.POINTER(_Array))),
        ("gts_replay_worst", pointer, (pointer, ctypes.POINTER(size), ctypes.POINTER(text))),
        ("gts_replay_close", pointer, (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _refuse(program: ctypes.c_void_p | None = None) -> GtstubError:
    return GtstubError(_runtime().gts_last_error(program).contents.message.decode(errors="replace"))


class StubProgram:
    """A program that was opened without Python's host: of a cache entry, or of a stub library."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self.name = str(_runtime().gts_name(handle).decode())

    def is_of(self, replay: Replay, index: int) -> bool:
        """Whether a call was recorded of this very program, and not of another variant or build."""
        return replay.is_of(index, self._handle)

    def replay(self, replay: Replay, index: int) -> int:
        """Makes one call again; how many fields differ by more than is tolerated."""
        return replay.call(index, self._handle)


@contextlib.contextmanager
def open_program(path: Path) -> Iterator[StubProgram]:
    handle = ctypes.c_void_p()
    if _runtime().gts_open(str(path).encode(), ctypes.byref(handle)) != 0:
        raise _refuse()
    try:
        yield StubProgram(handle)
    finally:
        _runtime().gts_close(ctypes.byref(handle))


@dataclasses.dataclass(frozen=True)
class Worst:
    """What a call has left in the field that differs most, and what was recorded of it."""

    process: str
    call: Call
    value: Value
    expected: np.ndarray[Any, Any]
    found: np.ndarray[Any, Any]


class Replay:
    """An archive, and what comparisons have found: `report` is there when the `with` statement has ended."""

    report: Mapping[str, Any]
    """docs/formats.md"""

    def __init__(self, archive: Archive, tolerances: Mapping[str | None, int] | None = None) -> None:
        """`tolerances`: in units in the last place, by the path of the argument; None is all others."""
        self.archive = archive
        self._tolerances = tolerances or {}
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> Replay:
        if _runtime().gts_replay_open(str(self.archive.path).encode(), ctypes.byref(self._handle)) != 0:
            raise _refuse()
        for argument, ulp in self._tolerances.items():
            path = None if argument is None else argument.encode()
            if path is None or any(leaf.path == argument for one in self.archive.programs for leaf in one.leaves):
                _runtime().gts_replay_tolerate(self._handle, path, ulp)
        return self

    def __exit__(self, *_: object) -> None:
        text = _runtime().gts_replay_close(ctypes.byref(self._handle))
        if not text:
            raise MemoryError
        self.report = json.loads(ctypes.string_at(text))
        _free(text)

    def is_of(self, index: int, program: ctypes.c_void_p) -> bool:
        return bool(_runtime().gts_replay_is_of(self._handle, index, program))

    def call(self, index: int, program: ctypes.c_void_p) -> int:
        """Makes a call of the archive again; how many fields differ by more than is tolerated."""
        differing: int = _runtime().gts_replay_call(self._handle, index, program)
        if differing < 0:
            raise _refuse(program)
        return differing

    def compare(self, index: int, argument: str, found: np.ndarray[Any, Any]) -> bool:
        """Compares what something else has made of one field; whether it differs by more than is tolerated."""
        array = _Array(data=found.ctypes.data, dtype=1 + DTYPES.index(found.dtype.name), device=1, rank=found.ndim)
        for axis in range(found.ndim):
            array.shape[axis] = found.shape[axis]
            array.strides[axis] = found.strides[axis] // found.itemsize
        status: int = _runtime().gts_replay_compare(self._handle, index, argument.encode(), ctypes.byref(array))
        if status < 0:
            raise _refuse()
        return status > 0

    def worst(self) -> Worst | None:
        """Of all comparisons so far; None where nothing has differed."""
        import numpy as np

        index, argument = ctypes.c_size_t(), ctypes.c_char_p()
        found = _runtime().gts_replay_worst(self._handle, ctypes.byref(index), ctypes.byref(argument))
        if not found:
            return None
        call = self.archive.calls[index.value]
        path = (argument.value or b"").decode()
        (value,) = (value for value in call.values if value.leaf.path == path)
        expected = self.archive.load(call, value, "after")
        values = np.frombuffer(ctypes.string_at(found, expected.nbytes), expected.dtype)
        return Worst(self.archive.path.name, call, value, expected, values.reshape(value.shape, order="F"))


def _free(text: int) -> None:
    """free() of the C library that the runtime uses as well."""
    free = ctypes.CDLL(None).free
    free.argtypes = (ctypes.c_void_p,)
    free.restype = None
    free(text)
