"""
The words that the runtime reads or writes without a lock, and the threads of tests/weak_memory that use them.

`atomics()` finds the operations in the sources, and `rows()` reads the table of docs/design.md that explains them.
`Model` compiles the runtime so that memory.c decides what a load sees, also with a weaker order in one place.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.support.calling_programs import CALLING
from tests.support.checkout import ROOT
from tests.support.runtime import RUNTIME, runtime_sources
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import write_stub

SOURCES = ROOT / "tests" / "weak_memory"
PROTOCOLS = SOURCES / "protocols.c"
PAGE = ROOT / "docs" / "design.md"

# ---- The code --------------------------------------------------------------------------------------------------------

OPERATION = re.compile(r"\b__atomic_(\w+)\(")
ORDER = re.compile(r"__ATOMIC_(\w+)")
WEAKER = {"ACQUIRE": ("RELAXED",), "RELEASE": ("RELAXED",), "ACQ_REL": ("ACQUIRE", "RELEASE")}


@dataclasses.dataclass(frozen=True)
class Order:
    """An order in the text of a file."""

    name: str
    begin: int

    def replaced(self, text: str, name: str) -> str:
        """The text with another order in its place."""
        return f"{text[: self.begin]}__ATOMIC_{name}{text[self.begin + len('__ATOMIC_' + self.name) :]}"


@dataclasses.dataclass(frozen=True)
class Atomic:
    """An atomic operation: `word` is the variable or the member."""

    path: Path
    line: int
    word: str
    operation: str
    orders: tuple[Order, ...]

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.word}: {self.text}"

    def weaker(self) -> Iterator[tuple[str, str]]:
        """The text of the file with each order in turn made weaker by one step, and the name of that."""
        text = self.path.read_text(encoding="utf-8")
        for order in self.orders:
            for name in WEAKER.get(order.name, ()):
                yield name.lower(), order.replaced(text, name)

    @property
    def text(self) -> str:
        """As the table has it: `load acquire`."""
        return " ".join((self.operation, *(order.name.lower() for order in self.orders)))


def atomics() -> list[Atomic]:
    """All of them in the runtime and in the templates, but for those that are sequentially consistent."""
    files = [*RUNTIME.rglob("*.[ch]"), *(ROOT / "templates").rglob("*.j2")]
    found = (each for path in sorted(files) for each in _atomics_of(path))
    return [each for each in found if all(order.name != "SEQ_CST" for order in each.orders)]


def _atomics_of(path: Path) -> Iterator[Atomic]:
    text = path.read_text(encoding="utf-8")
    for match in OPERATION.finditer(text):
        end = _end_of_call(text, match.end())
        first = text[match.end() : end].split(",")[0]
        orders = (Order(each[1], match.end() + each.start()) for each in ORDER.finditer(text[match.end() : end]))
        operation = match[1].removesuffix("_n").replace("_fetch", "").replace("fetch_", "").replace("_", " ")
        line = text.count("\n", 0, match.start()) + 1
        yield Atomic(path, line, re.findall(r"\w+", first)[-1], operation, tuple(orders))


def _end_of_call(text: str, begin: int) -> int:
    depth = 1
    for end in itertools.count(begin):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end
    raise AssertionError


# ---- The table -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table: words, in which files, the operations on them, and the protocol that tests them or ''."""

    words: frozenset[str]
    files: frozenset[Path]
    operations: frozenset[str]
    protocol: str

    def has(self, atomic: Atomic) -> bool:
        return atomic.word in self.words and atomic.path in self.files


def table(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of docs/design.md."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def row_of(atomic: Atomic) -> Row:
    (row,) = (each for each in rows() if each.has(atomic))
    return row


def rows() -> list[Row]:
    return [
        Row(
            frozenset(re.findall(r"`(\w+)`", words)),
            frozenset((PAGE.parent / path).resolve() for path in re.findall(r"\]\(([^)]+)\)", files)),
            frozenset(each.strip() for each in operations.split(";")),
            protocol,
        )
        for words, files, operations, _, protocol in table("### With atomic operations")
    ]


# ---- The threads -----------------------------------------------------------------------------------------------------

# -fsanitize=thread makes gcc call calls.c, which is linked in place of the sanitizer's library.
PLAIN = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-g", "-O1", "-fPIC", "-pthread")
FLAGS = (*PLAIN, "-Wno-unknown-pragmas", "-fsanitize=thread")
WRAPPED = ("pthread_mutex_lock", "pthread_mutex_unlock", "nanosleep", "memcpy", "memset", "free")


def protocols() -> list[str]:
    """The names of the protocols."""
    return re.findall(r'^    \{"([^"]+)",', PROTOCOLS.read_text(encoding="utf-8"), re.MULTILINE)


class Model:
    """The executable `protocols`, in a folder with what it loads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        stub = write_stub(SMALL_SDFG, SMALL_PROGRAM, folder)
        calling_stub = write_stub(CALLING.sdfg, CALLING.program, folder)
        (folder / "calling.c").write_text(CALLING.source, encoding="utf-8")
        model = (SOURCES / "memory.c", SOURCES / "calls.c")
        self._gcc(*PLAIN, "-shared", *model, "-o", "libmemory.so", "-ldl")
        for library, source in {"sum": ROOT / "tests" / "c" / "sum.c", "calling": folder / "calling.c"}.items():
            self._gcc(*FLAGS, *self._includes(), "-nodefaultlibs", "-shared", source, "-o", f"lib{library}.so")
        self._linked = {stub: "prog", calling_stub: "calling"}
        self._objects = {
            source: self._compile(source, folder) for source in (*runtime_sources(), *self._linked, PROTOCOLS)
        }
        self._link("protocols", self._objects.values())

    def run(self, protocol: str, rounds: int, *, program: str = "./protocols") -> subprocess.CompletedProcess[str]:
        command = [program, protocol, str(rounds)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)

    def finds(self, atomic: Atomic, text: str, rounds: int) -> bool:
        """Whether the protocol of an operation fails with another text of its file."""
        row = row_of(atomic)
        folder = self.folder / "weaker"
        other = folder / atomic.path.relative_to(RUNTIME / "include" if "include" in atomic.path.parts else RUNTIME)
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(text, encoding="utf-8")
        objects = dict(self._objects)
        if atomic.path.suffix == ".c":
            objects[atomic.path] = self._compile(other, folder)
        else:  # of what includes it, the stubs, and the files of the row
            for source in {PROTOCOLS, *self._linked, *row.files} & set(objects):
                objects[source] = self._compile(source, folder, f"-I{folder}")
        self._link("weaker/protocols", objects.values())
        other.unlink()
        return self.run(row.protocol, rounds, program="./weaker/protocols").returncode != 0

    def _includes(self) -> Sequence[str]:
        return [f"-I{path}" for path in (RUNTIME / "include", RUNTIME, SOURCES, self.folder)]

    def _compile(self, source: Path, folder: Path, *flags: str) -> Path:
        output = folder / f"{source.parent.name}_{source.stem}.o"
        linked = [f"-DGTS_LINKED={self._linked[source]}" if source in self._linked else "-DGTS_STATIC_RUNTIME"]
        self._gcc(*FLAGS, *flags, *linked, *self._includes(), "-c", source, "-o", output)
        return output

    def _link(self, output: str, objects: Iterable[Path]) -> None:
        wrapped = [f"-Wl,--wrap={name}" for name in WRAPPED]
        rpath = f"-Wl,-rpath,{self.folder}"
        self._gcc(*objects, *wrapped, "-L.", "-l:libmemory.so", rpath, "-pthread", "-ldl", "-lm", "-o", output)

    def _gcc(self, *arguments: str | Path) -> None:
        command = ["gcc", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
