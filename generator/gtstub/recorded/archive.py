"""
Recordings, read: what `runtime/record/recorder.c` has written. docs/record.md describes the files.

    for archive in archives(Path("recording")):
        for call in archive.calls:
            vn = archive.load(call, "vn", "before")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gtstub.errors import GtstubError, SignatureError

if TYPE_CHECKING:
    import numpy as np

INDEX = "recording.txt"
SCHEMA = "gtstub/recording/1"
PROGRAMS = "programs.txt"
INCOMPLETE = ".incomplete"
"""How the name of an archive ends whose process could not write all calls."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Of a connectivity, `codomain` is the dimension that its elements are indices of."""

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
    """`id` is its name within the archive: of two programs of one name, the second is `<name>-2`."""

    id: str
    name: str
    program_digest: str
    sdfg_digest: str
    leaves: tuple[Leaf, ...]


@dataclasses.dataclass(frozen=True)
class Value:
    """
    One argument of one call. `before` and `after` are where it lies in its file, `after` is None where the call does
    not write it. Arguments of one `memory` overlap; the first element of this one lies at `offset` in it, in bytes.
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
        """Name of its file, and of the field for serialbox: values of another shape have a field of their own."""
        return self.leaf.name if self.store == 1 else f"{self.leaf.name}@{self.store}"


@dataclasses.dataclass(frozen=True)
class Call:
    """`number` counts the calls of one program, from 1."""

    program: Program
    number: int
    values: tuple[Value, ...]


@dataclasses.dataclass(frozen=True)
class Archive:
    """What one process has recorded, in the order in which its calls ended."""

    path: Path
    programs: tuple[Program, ...]
    calls: tuple[Call, ...]

    @property
    def is_complete(self) -> bool:
        return self.path.suffix != INCOMPLETE

    def load(self, call: Call, value: Value, when: Literal["before", "after"]) -> np.ndarray[Any, Any]:
        """An argument, as an array of its own in Fortran's order; its index 0 is `value.origin`."""
        import numpy as np

        place = value.before if when == "before" else value.after
        if place is None:
            raise GtstubError(f"Argument '{value.leaf.path}' of program '{call.program.name}' is not written.")
        file = self.path / call.program.id / f"{call.program.id}_{value.field}.dat"
        dtype = np.dtype(value.leaf.dtype)
        count = int(np.prod(value.shape, dtype=np.int64))
        found = np.fromfile(file, dtype=dtype, count=count, offset=place)
        if found.size != count:
            raise SignatureError(f"'{file}' is shorter than '{INDEX}' says.")
        return found.reshape(value.shape, order="F")


def archives(directory: Path) -> list[Archive]:
    """The archives of all processes in a directory, or that of one."""
    return [read(path) for path in archive_paths(directory)]


def archive_paths(directory: Path) -> list[Path]:
    if (directory / INDEX).is_file():
        return [directory]
    return [index.parent for index in sorted(directory.glob(f"*/{INDEX}"))]


def loaded_programs(directory: Path) -> list[str]:
    """What the processes have loaded, recorded or not. Known only where some programs were chosen."""
    file = directory / PROGRAMS
    return sorted(set(file.read_text(encoding="utf-8").splitlines())) if file.is_file() else []


def read(path: Path) -> Archive:
    """The archive of one process: all calls that are whole, even if the process was killed while it wrote."""
    index = path / INDEX
    text = index.read_text(encoding="utf-8")
    lines = iter(text[: text.rfind("\n") + 1].splitlines())
    programs: dict[str, Program] = {}
    calls = []
    try:
        if (schema := next(lines)) != SCHEMA:
            raise ValueError(schema)
        for line in lines:
            keyword, *words = line.split("\t")
            if keyword == "program":
                program = _read_program(words, lines)
                programs[program.id] = program
            elif keyword == "call":
                calls.append(_read_call(programs[words[0]], int(words[1]), lines))
            else:
                raise ValueError(keyword)
    except StopIteration:
        pass  # the process wrote no more
    except (ValueError, KeyError, IndexError):
        raise SignatureError(f"'{index}' is malformed, or not of schema '{SCHEMA}'.") from None
    return Archive(path, tuple(programs.values()), tuple(calls))


def _words(lines: Iterator[str], keyword: str) -> list[str]:
    """Those of the next line, behind its keyword; StopIteration where the process wrote no more."""
    found, *words = next(lines).split("\t")
    if found != keyword:
        raise ValueError(found)
    return words


def _read_program(words: list[str], lines: Iterator[str]) -> Program:
    id_, name, program_digest, sdfg_digest, count = words
    leaves = []
    for _ in range(int(count)):
        leaf, path, kind, dtype, written, rank, *rest = _words(lines, "leaf")
        dims, connectivity = tuple(rest[: int(rank)]), rest[int(rank) :]
        codomain, has_skip_values = connectivity if kind == "connectivity" else (None, "0")
        leaves.append(Leaf(leaf, path, kind, dtype, written == "1", dims, codomain, has_skip_values == "1"))
    return Program(id_, name, program_digest, sdfg_digest, tuple(leaves))


def _read_call(program: Program, number: int, lines: Iterator[str]) -> Call:
    values = []
    for leaf in program.leaves:
        store, before, after, memory, offset, *axes = map(int, _words(lines, "value"))
        rank = len(leaf.dims)
        if len(axes) != 3 * rank:
            raise ValueError(axes)
        shape, origin, strides = (tuple(axes[i * rank : (i + 1) * rank]) for i in range(3))
        values.append(Value(leaf, store, before, None if after < 0 else after, memory, offset, shape, origin, strides))
    return Call(program, number, tuple(values))
