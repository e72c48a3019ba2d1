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
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.recorded.archive import Archive, Call, Value
from gtstub.recorded.runtime import Array, free, refusal, runtime
from gtstub.signature.dtypes import NUMBERS

if TYPE_CHECKING:
    import numpy as np


class StubProgram:
    """A program that was opened without Python's host: of a cache entry, or of a stub library."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self.name = str(runtime().gts_name(handle).decode())

    def is_of(self, replay: Replay, index: int) -> bool:
        """Whether a call was recorded of this very program, and not of another variant or build."""
        return replay.is_of(index, self._handle)

    def replay(self, replay: Replay, index: int) -> int:
        """Makes one call again; how many fields differ by more than is tolerated."""
        return replay.call(index, self._handle)


@contextlib.contextmanager
def open_program(path: Path) -> Iterator[StubProgram]:
    handle = ctypes.c_void_p()
    if runtime().gts_open(str(path).encode(), ctypes.byref(handle)) != 0:
        raise refusal()
    try:
        yield StubProgram(handle)
    finally:
        runtime().gts_close(ctypes.byref(handle))


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
        if runtime().gts_replay_open(str(self.archive.path).encode(), ctypes.byref(self._handle)) != 0:
            raise refusal()
        for argument, ulp in self._tolerances.items():
            path = None if argument is None else argument.encode()
            if path is None or any(leaf.path == argument for one in self.archive.programs for leaf in one.leaves):
                runtime().gts_replay_tolerate(self._handle, path, ulp)
        return self

    def __exit__(self, *_: object) -> None:
        text = runtime().gts_replay_close(ctypes.byref(self._handle))
        if not text:
            raise MemoryError
        self.report = json.loads(ctypes.string_at(text))
        free(text)

    def is_of(self, index: int, program: ctypes.c_void_p) -> bool:
        return bool(runtime().gts_replay_is_of(self._handle, index, program))

    def call(self, index: int, program: ctypes.c_void_p) -> int:
        """Makes a call of the archive again; how many fields differ by more than is tolerated."""
        differing: int = runtime().gts_replay_call(self._handle, index, program)
        if differing < 0:
            raise refusal(program)
        return differing

    def compare(self, index: int, argument: str, found: np.ndarray[Any, Any]) -> bool:
        """Compares what something else has made of one field; whether it differs by more than is tolerated."""
        array = Array(data=found.ctypes.data, dtype=NUMBERS[found.dtype.name], device=1, rank=found.ndim)
        for axis in range(found.ndim):
            array.shape[axis] = found.shape[axis]
            array.strides[axis] = found.strides[axis] // found.itemsize
        status: int = runtime().gts_replay_compare(self._handle, index, argument.encode(), ctypes.byref(array))
        if status < 0:
            raise refusal()
        return status > 0

    def worst(self) -> Worst | None:
        """Of all comparisons so far; None where nothing has differed."""
        import numpy as np

        index, argument = ctypes.c_size_t(), ctypes.c_char_p()
        found = runtime().gts_replay_worst(self._handle, ctypes.byref(index), ctypes.byref(argument))
        if not found:
            return None
        call = self.archive.calls[index.value]
        path = (argument.value or b"").decode()
        (value,) = (value for value in call.values if value.leaf.path == path)
        expected = self.archive.load(call, value, "after")
        values = np.frombuffer(ctypes.string_at(found, expected.nbytes), expected.dtype)
        return Worst(self.archive.path.name, call, value, expected, values.reshape(value.shape, order="F"))
