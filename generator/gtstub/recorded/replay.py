"""
Replays of recorded calls with the functions of `gtstub/replay.h`.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.recorded.archive import Archive, Call, Value
from gtstub.recorded.runtime import Array, free, refusal, runtime
from gtstub.signature.dtypes import NUMBERS

if TYPE_CHECKING:
    import numpy as np


class StubProgram:
    """The program of a cache entry or of a stub library, opened by the runtime without the Python host."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self.handle = handle
        self.name = str(runtime().gts_name(handle).decode())

    def is_of(self, replay: Replay, index: int) -> bool:
        """Whether the recorded call `index` has the signatures of this program."""
        return bool(runtime().gts_replay_is_of(replay.handle, index, self.handle))

    def replay(self, replay: Replay, index: int) -> int:
        """Repeats the recorded call `index`. Returns the number of fields that differ by more than the tolerance."""
        differing: int = runtime().gts_replay_call(replay.handle, index, self.handle)
        if differing < 0:
            raise refusal(self.handle)
        return differing


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
    """The field that differs most: the array `found` after the replay, and the recorded array `expected`."""

    process: str
    call: Call
    value: Value
    expected: np.ndarray[Any, Any]
    found: np.ndarray[Any, Any]


class Replay:
    """The replay of an archive, as a context manager."""

    report: Mapping[str, Any]
    """The results of all comparisons (docs/formats.md). Set at the end of the `with` statement."""

    def __init__(self, archive: Archive, tolerances: Mapping[str | None, int] | None = None) -> None:
        """`tolerances` are in units in the last place, by the path of the argument; None stands for all others."""
        self.archive = archive
        self._tolerances = tolerances or {}
        self.handle = ctypes.c_void_p()

    def __enter__(self) -> Replay:
        if runtime().gts_replay_open(str(self.archive.path).encode(), ctypes.byref(self.handle)) != 0:
            raise refusal()
        for argument, ulp in self._tolerances.items():
            path = None if argument is None else argument.encode()
            if path is None or any(leaf.path == argument for one in self.archive.programs for leaf in one.leaves):
                runtime().gts_replay_tolerate(self.handle, path, ulp)
        return self

    def __exit__(self, *_: object) -> None:
        text = runtime().gts_replay_close(ctypes.byref(self.handle))
        if not text:
            raise MemoryError
        self.report = json.loads(ctypes.string_at(text))
        free(text)

    def step(self, calls: Sequence[tuple[int, StubProgram]]) -> int:
        """Repeats recorded calls as one step. Returns the number of fields that differ by more than the tolerance."""
        indices = (ctypes.c_size_t * len(calls))(*(index for index, _ in calls))
        programs = (ctypes.c_void_p * len(calls))(*(program.handle for _, program in calls))
        differing: int = runtime().gts_replay_step(self.handle, indices, programs, len(calls))
        if differing < 0:
            raise refusal()
        return differing

    def compare(self, index: int, argument: str, found: np.ndarray[Any, Any]) -> bool:
        """Compares a field that a host has computed itself. Returns True if it differs by more than the tolerance."""
        array = Array(data=found.ctypes.data, dtype=NUMBERS[found.dtype.name], device=1, rank=found.ndim)
        array.shape[: found.ndim] = found.shape
        array.strides[: found.ndim] = [stride // found.itemsize for stride in found.strides]
        status: int = runtime().gts_replay_compare(self.handle, index, argument.encode(), ctypes.byref(array))
        if status < 0:
            raise refusal()
        return status > 0

    def worst(self) -> Worst | None:
        """The worst field of all comparisons so far, or None if nothing differs."""
        import numpy as np

        index, argument = ctypes.c_size_t(), ctypes.c_char_p()
        found = runtime().gts_replay_worst(self.handle, ctypes.byref(index), ctypes.byref(argument))
        if not found:
            return None
        call = self.archive.calls[index.value]
        path = (argument.value or b"").decode()
        (value,) = (value for value in call.values if value.leaf.path == path)
        expected = self.archive.load(call, value, "after")
        values = np.frombuffer(ctypes.string_at(found, expected.nbytes), expected.dtype)
        return Worst(self.archive.path.name, call, value, expected, values.reshape(value.shape, order="F"))
