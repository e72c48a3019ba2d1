"""
Replays of recorded calls.

    replay = Replay(archive)
    with open_program(entry) as program:
        for call in archive.calls:
            program.replay(replay, call)
    replay.comparisons
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gtstub.errors import GtstubError
from gtstub.stub.signature.dtypes import NUMBERS
from gtstub.tools.recorded.archive import ARRAYS, Archive, Call, Program, Value
from gtstub.tools.recorded.compare import APART, AnyArray, compare
from gtstub.tools.recorded.runtime import (
    CONNECTIVITY,
    CPU,
    FIELD,
    STATIC,
    Action,
    Array,
    Contract,
    Opened,
    refusal,
    runtime,
)

SUBSETS = "GTSTUB_SUBSETS"
"""The variable with the tables of which the runtime does not ask whether they count from 1."""


@dataclasses.dataclass(frozen=True)
class Worst:
    """The field that differs most, `found` after the replay."""

    archive: Archive
    call: Call
    value: Value
    found: AnyArray

    @property
    def expected(self) -> AnyArray:
        return self.archive.load(self.call, self.value, "after")


class Replay:
    """A replay of an archive. `comparisons` are the results of all comparisons so far (docs/formats.md)."""

    def __init__(self, archive: Archive, tolerances: Mapping[str | None, int] | None = None) -> None:
        """`tolerances` are in units in the last place, by the path of the argument; None stands for all others."""
        self.archive = archive
        self.comparisons: list[dict[str, Any]] = []
        self.worst: Worst | None = None
        self._tolerances = tolerances or {}
        self._greatest = 0

    def compare(self, call: Call, arrays: Sequence[AnyArray]) -> int:
        """
        Compares what a call has written to `arrays`, which are those of its values. Returns the number of fields that
        differ by more than the tolerance.
        """
        differing = 0
        for value, found in zip(call.values, arrays, strict=True):
            if value.after is None:
                continue
            tolerance = self._tolerances.get(value.leaf.path, self._tolerances.get(None, 0))
            result = compare(call, value, self.archive.blocks(call, value, "after"), found, tolerance)
            self.comparisons.append(result)
            differing += result["beyond"] > 0
            ulp = (result["worst"] or {"ulp": 0})["ulp"]
            if (ulp := APART if ulp is None else ulp) > self._greatest:
                self._greatest = ulp
                self.worst = Worst(self.archive, call, value, found)
        return differing


def lay_out(archive: Archive, call: Call) -> list[AnyArray]:
    """The arguments before a call, in new memory with the recorded strides and overlaps."""
    ends: dict[int, int] = {}
    for value in call.values:
        ends[value.memory] = max(ends.get(value.memory, 0), value.extent[1])
    arrays: list[AnyArray] = []
    try:
        memories = {memory: np.zeros(end, np.uint8) for memory, end in ends.items()}
        for value in call.values:
            dtype = np.dtype(value.leaf.dtype)
            # The stride of an axis with fewer than two elements may be any number.
            axes = zip(value.strides, value.shape, strict=True)
            strides = [dtype.itemsize * (stride if size > 1 else 0) for stride, size in axes]
            arrays.append(np.ndarray(value.shape, dtype, memories[value.memory].data, value.offset, strides))
            archive.load_into(arrays[-1], call, value, "before")
    except MemoryError:
        raise GtstubError(f"Out of memory while replaying program '{call.program.name}'.") from None
    return arrays


class StubProgram:
    """The program of a cache entry or of a stub library, opened by the runtime without the Python host."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self.handle = handle
        self.stub = ctypes.cast(handle, ctypes.POINTER(Opened)).contents.stub.contents
        self.name: str = self.stub.name.decode()
        self.leaves: list[Contract] = self.stub.leaves[: self.stub.leaf_count]

    def is_of(self, recorded: Program) -> bool:
        """Whether it has the signatures of a recorded program."""
        digests = recorded.program_digest.encode(), recorded.sdfg_digest.encode()
        return (self.stub.program_digest, self.stub.sdfg_digest) == digests

    def replay(self, replay: Replay, call: Call) -> int:
        """Repeats a recorded call. Returns the number of fields that differ by more than the tolerance."""
        staged = _Staged(self, replay.archive, call)
        if self.stub.call(self.handle, staged.args.ctypes.data) != 0:
            raise refusal(self.handle)
        return replay.compare(call, staged.arrays)


@contextlib.contextmanager
def open_program(path: Path) -> Iterator[StubProgram]:
    handle = ctypes.c_void_p()
    if runtime().gts_open(os.fsencode(path), ctypes.byref(handle)) != 0:
        raise refusal()
    program = StubProgram(handle)
    tables = [leaf.path.decode() for leaf in program.leaves if leaf.kind == CONNECTIVITY]
    others = os.environ.get(SUBSETS)
    os.environ[SUBSETS] = ",".join([*tables, others or ""])  # Recorded tables count from 0.
    try:
        yield program
    finally:
        if others is None:
            del os.environ[SUBSETS]
        else:
            os.environ[SUBSETS] = others
        runtime().gts_close(ctypes.byref(handle))


class _Staged:
    """A recorded call whose arguments are in memory. `args` is the `struct <name>_args` of a program."""

    def __init__(self, program: StubProgram, archive: Archive, call: Call) -> None:
        self.arrays = lay_out(archive, call)
        self.args = np.zeros(program.stub.args_size, np.uint8)
        self._passed: list[Array] = []  # They own the names of dimensions.
        recorded = {value.leaf.name: (value, array) for value, array in zip(call.values, self.arrays, strict=True)}
        for leaf in program.leaves:
            found = recorded.get(leaf.name.decode())
            content = self._content(program, leaf, *found) if found is not None else None
            if content is None:
                raise GtstubError(
                    f"Program '{program.name}' takes argument '{leaf.path.decode()}', which is not in the recording, or"
                    " is of another kind there: it is not the program that was recorded."
                )
            self.args[leaf.member : leaf.member + len(content)] = np.frombuffer(content, np.uint8)

    def _content(self, program: StubProgram, leaf: Contract, value: Value, array: AnyArray) -> bytes | None:
        """The bytes of an argument in `args`; None if it is of another kind than the recorded one."""
        is_array = leaf.kind in (FIELD, CONNECTIVITY)
        if is_array != (value.leaf.kind in ARRAYS) or not (is_array or leaf.dtype == NUMBERS[value.leaf.dtype]):
            return None
        if leaf.kind == STATIC:
            if ctypes.string_at(leaf.value, array.nbytes) != array.tobytes():
                raise GtstubError(
                    f"Argument '{leaf.path.decode()}' of program '{program.name}' was compiled in with another value"
                    " than the recorded one."
                )
            return b""
        if not is_array:
            return array.tobytes()
        if leaf.device != CPU:
            raise GtstubError(
                f"Program '{program.name}' takes arrays on a GPU, where calls are not replayed: give one for a CPU."
            )
        passed = Array(array.ctypes.data, NUMBERS[value.leaf.dtype], CPU, array.ndim)
        passed.origin[: array.ndim], passed.shape[: array.ndim] = value.origin, value.shape
        passed.strides[: array.ndim] = value.strides
        passed.dims[: array.ndim] = [dim.encode() for dim in value.leaf.dims]
        self._passed.append(passed)
        return bytes(passed)


def replay_step(replay: Replay, calls: Sequence[tuple[Call, StubProgram]]) -> int:
    """Repeats recorded calls as one step. Returns the number of fields that differ by more than the tolerance."""
    library, step, actions = runtime(), ctypes.c_void_p(), (Action * len(calls))()
    staged = []
    try:
        for action, (call, program) in zip(actions, calls, strict=True):
            staged.append(_Staged(program, replay.archive, call))
            if library.gts_bind(program.handle, staged[-1].args.ctypes.data, ctypes.byref(action)) != 0:
                raise refusal(program.handle)
        if library.gts_step_new(b"replay", actions, len(calls), ctypes.byref(step)) != 0:
            raise refusal()
        if library.gts_step_run(step) != 0:
            raise refusal()
    finally:
        library.gts_step_free(ctypes.byref(step))
        for action in actions:
            library.gts_unbind(ctypes.byref(action))  # `call` is its first member.
    return sum(replay.compare(call, one.arrays) for (call, _), one in zip(calls, staged, strict=True))
