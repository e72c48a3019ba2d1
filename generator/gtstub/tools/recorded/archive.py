"""
Reading of recordings, which `runtime/observers/record/recorder.c` writes. docs/record.md describes the files.

    for archive in archives(Path("recording")):
        for call in archive.calls:
            fields = {value.leaf.path: archive.load(call, value, "before") for value in call.values}
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gtstub.abi import MAX_RANK
from gtstub.errors import GtstubError, SignatureError
from gtstub.stub.signature.dtypes import DTYPES, NAMES
from gtstub.util.regular import read_regular

if TYPE_CHECKING:
    import numpy as np

INDEX = "recording.txt"
LARGEST = 2**30
"""Bytes of the largest index that is read."""
BLOCK = 2**14
"""Elements that are compared at a time."""
SCHEMA = "gtstub/recording/1"
PROGRAMS = "programs.txt"
INCOMPLETE = ".incomplete"
"""The suffix of an archive whose process could not write all calls."""

ARRAYS = ("field", "connectivity")
KINDS = (*ARRAYS, "zero_dim_field", "scalar", "static")
"""The kinds of arguments. Those that are no arrays have no axes."""

_NAME = re.compile(r"[\w-]+", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,19}")

type When = Literal["before", "after"]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An argument of a program. The elements of a connectivity are indices of the dimension `codomain`."""

    name: str
    path: str
    kind: str
    dtype: str
    written: bool
    dims: tuple[str, ...]
    codomain: str | None = None
    has_skip_values: bool = False


@dataclasses.dataclass(frozen=True)
class Program:
    """A recorded program. `id` is its name in the archive, `<name>-2` for the second program of one name."""

    id: str
    name: str
    program_digest: str
    sdfg_digest: str
    leaves: tuple[Leaf, ...]


@dataclasses.dataclass(frozen=True)
class Value:
    """
    One argument of one call. `before` and `after` are offsets in its file, in bytes; `after` is None if the call does
    not write the argument. Arguments with the same `memory` overlap; `offset` is that of the first element in it, in
    bytes. `shape`, `origin` and `strides` count elements.
    """

    leaf: Leaf
    store: int
    before: int
    after: int | None
    memory: int
    offset: int
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def field(self) -> str:
        """The name of its file and of its serialbox field. Each shape of an argument has its own file and field."""
        return self.leaf.name if self.store == 1 else f"{self.leaf.name}@{self.store}"

    @property
    def size(self) -> int:
        """Of all elements, in bytes."""
        return math.prod(self.shape) * NAMES[self.leaf.dtype].size

    @property
    def extent(self) -> tuple[int, int]:
        """The bytes in its memory that it spans: the first one, and the one after the last."""
        if 0 in self.shape:
            return self.offset, self.offset
        size = NAMES[self.leaf.dtype].size
        reach = [(count - 1) * stride * size for count, stride in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(min(0, one) for one in reach), self.offset + sum(max(0, one) for one in reach) + size

    def place(self, when: When) -> int | None:
        return self.before if when == "before" else self.after


@dataclasses.dataclass(frozen=True)
class Call:
    """One call. `number` counts the calls of its program, from 1."""

    program: Program
    number: int
    values: tuple[Value, ...]


@dataclasses.dataclass(frozen=True)
class Archive:
    """The calls that one process has recorded, in the order in which they ended."""

    path: Path
    programs: tuple[Program, ...]
    calls: tuple[Call, ...]

    @property
    def is_complete(self) -> bool:
        return self.path.suffix != INCOMPLETE

    def load(self, call: Call, value: Value, when: When) -> np.ndarray[Any, Any]:
        """A new array of shape `value.shape` in Fortran order. Its first element is at `value.origin`."""
        import numpy as np

        file, place = self._find(call, value, when)
        found = np.fromfile(file, value.leaf.dtype, math.prod(value.shape), offset=place)
        return found.reshape(value.shape, order="F")

    def blocks(self, call: Call, value: Value, when: When) -> Iterator[np.ndarray[Any, Any]]:
        """All elements, the first axis fastest, in arrays that the cache of a CPU holds. The next one overwrites it."""
        import numpy as np

        file, place = self._find(call, value, when)
        left, block = math.prod(value.shape), np.empty(BLOCK, value.leaf.dtype)
        with file.open("rb") as stream:
            stream.seek(place)
            while left > 0:
                part = block[:left]
                stream.readinto(part.view("u1").data)
                left -= part.size
                yield part

    def load_into(self, array: np.ndarray[Any, Any], call: Call, value: Value, when: When) -> None:
        """Does the same, but writes the elements into an array of this type and shape."""
        if not array.flags.f_contiguous:
            array[...] = self.load(call, value, when)
            return
        file, place = self._find(call, value, when)
        with file.open("rb") as stream:
            stream.seek(place)
            stream.readinto(array.reshape(-1, order="F").view("u1").data)

    def _find(self, call: Call, value: Value, when: When) -> tuple[Path, int]:
        """The file of a value, and the offset in it."""
        if (place := value.place(when)) is None:
            raise GtstubError(f"Argument '{value.leaf.path}' of program '{call.program.name}' is not written.")
        name = f"{call.program.id}/{call.program.id}_{value.field}.dat"
        file = self.path / name
        with contextlib.suppress(OSError):  # The name may be too long.
            if file.is_file() and os.access(file, os.R_OK) and place + value.size <= file.stat().st_size:
                return file, place
        raise GtstubError(
            f"Recording '{self.path}' lacks a value of argument '{value.leaf.path}' of program '{call.program.name}':"
            f" '{name}' cannot be read, or is shorter than the index says."
        )


def archives(directory: Path) -> list[Archive]:
    """The archives in the directory of a recording, or the one archive that `directory` itself is."""
    return [read(path) for path in archive_paths(directory)]


def archive_paths(directory: Path) -> list[Path]:
    if (directory / INDEX).is_file():
        return [directory]
    return [index.parent for index in sorted(directory.glob(f"*/{INDEX}"))]


def loaded_programs(directory: Path) -> list[str]:
    """The programs that the processes have loaded. Known only if the recording was limited to some programs."""
    file = directory / PROGRAMS
    return sorted(set(file.read_text(encoding="utf-8").splitlines())) if file.is_file() else []


def read(path: Path) -> Archive:
    """The archive of one process, with all complete calls, even if the process was killed while it wrote."""
    index = path / INDEX
    content = read_regular(index, LARGEST)
    programs: dict[str, Program] = {}
    calls = []
    try:
        lines = iter(content[: content.rfind(b"\n") + 1].decode().split("\n")[:-1])
        if (schema := next(lines)) != SCHEMA:
            raise ValueError(schema)
        for line in lines:
            keyword, *words = line.split("\t")
            if keyword == "program":
                program = _read_program(words, lines)
                programs[program.id] = program
            elif keyword == "call":
                calls.append(_read_call(programs[words[0]], _number(words[1], 1), lines))
            else:
                raise ValueError(keyword)
    except StopIteration:
        pass  # The process stopped within a call.
    except (ValueError, KeyError, IndexError):
        raise SignatureError(f"'{index}' is malformed, or not of schema '{SCHEMA}'.") from None
    return Archive(path, tuple(programs.values()), tuple(calls))


def _words(lines: Iterator[str], keyword: str) -> list[str]:
    """The words after the keyword of the next line. Raises StopIteration at the end of the file."""
    found, *words = next(lines).split("\t")
    if found != keyword:
        raise ValueError(found)
    return words


def _number(text: str, least: int = 0, most: int = 2**63 - 1) -> int:
    if _NUMBER.fullmatch(text) is None or not least <= int(text) <= most:
        raise ValueError(text)
    return int(text)


def _read_program(words: list[str], lines: Iterator[str]) -> Program:
    id_, name, program_digest, sdfg_digest, count = words
    leaves = []
    for _ in range(_number(count, most=2**15 - 1)):
        leaf, path, kind, dtype, written, rank_, *rest = _words(lines, "leaf")
        rank = _number(rank_, most=MAX_RANK if kind in ARRAYS else 0)
        if kind not in KINDS or dtype not in DTYPES or len(rest) < rank:
            raise ValueError(leaf)
        dims, connectivity = tuple(rest[:rank]), rest[rank:]
        codomain, has_skip_values = connectivity if kind == "connectivity" else (None, "0")
        leaves.append(Leaf(leaf, path, kind, dtype, written == "1", dims, codomain, has_skip_values == "1"))
    for each in (id_, name, *(leaf.name for leaf in leaves)):
        if _NAME.fullmatch(each) is None:  # It is part of a path.
            raise ValueError(each)
    return Program(id_, name, program_digest, sdfg_digest, tuple(leaves))


def _read_call(program: Program, number: int, lines: Iterator[str]) -> Call:
    values = []
    for leaf in program.leaves:
        store_, before_, after_, memory_, offset_, *axes = _words(lines, "value")
        store, before, after = _number(store_, 1, 2**31 - 1), _number(before_), _number(after_, -1)
        memory, offset = _number(memory_, most=len(program.leaves) - 1), _number(offset_)
        rank = len(leaf.dims)
        if len(axes) != 3 * rank:
            raise ValueError(axes)
        shape = tuple(map(_number, axes[:rank]))
        origin, strides = (tuple(_number(axis, -(2**63)) for axis in axes[i * rank : (i + 1) * rank]) for i in (1, 2))
        value = Value(leaf, store, before, None if after < 0 else after, memory, offset, shape, origin, strides)
        low, high = value.extent
        if low < 0 or max(high, value.size, *map(sum, zip(origin, shape, strict=True))) >= 2**63:
            raise ValueError(axes)  # It is outside its memory, or no address or index is so large.
        values.append(value)
    return Call(program, number, tuple(values))
