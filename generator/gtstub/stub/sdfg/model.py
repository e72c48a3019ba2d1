"""
What an SDFG consists of. Texts are expressions and conditions in Python as DaCe writes them, without '$' for symbols.

`reduce.jq` has the same members, and says where DaCe's JSON form has them.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = re.compile(r"[A-Za-z_]\w*")
"""A name in an expression or a condition."""


@dataclasses.dataclass(frozen=True)
class Range:
    """The indices from `start` to `end`, which is included, in tiles."""

    start: str
    end: str
    step: str = "1"
    tile: str = "1"

    @property
    def is_point(self) -> bool:
        return self.start == self.end


@dataclasses.dataclass(frozen=True)
class Subset:
    """A range for each axis; none if it is `unread`, a kind of subset that is not read."""

    ranges: tuple[Range, ...]
    unread: str = ""

    @property
    def is_point(self) -> bool:
        """Whether it has one index on each axis."""
        return not self.unread and all(each.is_point for each in self.ranges)

    @property
    def ends(self) -> tuple[tuple[str, str], ...] | None:
        """The first and the last index on each axis; None if it is not read, or leaves out indices between them."""
        strided = self.strided
        if strided is None or any(step != 1 for _, _, step in strided):
            return None
        return tuple((first, last) for first, last, _ in strided)

    @property
    def strided(self) -> tuple[tuple[str, str, int], ...] | None:
        """
        The first index on each axis, one that the last does not exceed, and what is added from one index to the next;
        None if that is not read.
        """
        if self.unread or any(each.tile != "1" or not re.fullmatch("[1-9][0-9]*", each.step) for each in self.ranges):
            return None
        return tuple((each.start, each.end, int(each.step)) for each in self.ranges)


@dataclasses.dataclass(frozen=True)
class Container:
    """
    An array, a scalar, or another `kind` of DaCe's data. `dtype` is a name, or DaCe's JSON form of a vector, a pointer
    or a structure. A container that `has_offset` adds something to indices. The size, in elements, may be missing.
    """

    kind: str
    dtype: str | Mapping[str, Any]
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    total_size: str
    storage: str
    lifetime: str
    is_transient: bool
    has_offset: bool

    @property
    def is_view(self) -> bool:
        """Whether it is a name for a part of another container: a view, or a reference."""
        return "View" in self.kind or "Reference" in self.kind

    @property
    def has_one_element(self) -> bool:
        return all(size == "1" for size in self.shape)


# --- States -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Edge:
    """
    An edge between two nodes of a state. It moves a part of `data`, or only orders the nodes if that is None. `subset`
    is that of `data`, and `other_subset` that of the container at the other end. A dynamic one may move fewer elements
    than its subset has. One that `is_wcr` combines what it writes with what is there (a write-conflict resolution).
    """

    src: int
    dst: int
    src_connector: str | None
    dst_connector: str | None
    data: str | None
    subset: Subset | None
    other_subset: Subset | None
    is_data_src: bool | None
    is_dynamic: bool
    is_wcr: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """
    A node of a state; `entry` is the entry of the map around it. Which other members it has depends on its kind: access
    nodes have a container, tasklets their code and what they add to the initialisation of the library, entries of maps
    the ranges of their variables and DaCe's text of them, nested SDFGs the texts that stand for symbols of the inner
    SDFG. Of library nodes, which are not read, it has the words in their properties, so that symbols in them count as
    mentioned.
    """

    id: int
    kind: str
    label: str
    entry: int | None
    schedule: str
    container: str = ""
    code: str = ""
    language: str = ""
    init_code: str = ""
    variables: tuple[str, ...] = ()
    ranges: Subset = Subset(())
    text: str = ""
    sdfg: Sdfg | None = None
    mapping: Mapping[str, str] = dataclasses.field(default_factory=dict)
    classpath: str = ""
    words: tuple[str, ...] = ()

    @property
    def statements(self) -> Sequence[ast.stmt]:
        """The code of a tasklet in Python; none if it cannot be read."""
        try:
            return ast.parse(self.code).body if self.language == "Python" else ()
        except (SyntaxError, ValueError, RecursionError):
            return ()

    @property
    def is_entry(self) -> bool:
        return self.kind.endswith("Entry")

    @property
    def is_exit(self) -> bool:
        return self.kind.endswith("Exit")


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A part of the control flow; `kind` is DaCe's. What leaves a loop or the program is a region without blocks."""

    id: int
    kind: str
    label: str


@dataclasses.dataclass(frozen=True, eq=False)
class State(Block):
    """The maps in a state do not contain each other, and its edges are between its nodes."""

    nodes: Mapping[int, Node]
    edges: tuple[Edge, ...]


# --- Control flow -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Transition:
    """An edge between two blocks, which assigns values to symbols. None is the condition that always holds."""

    src: int
    dst: int
    condition: str | None
    assignments: Mapping[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Region(Block):
    """Blocks, and the edges between them. `start` counts only if the edges do not tell which block is the first."""

    blocks: Mapping[int, Block]
    edges: tuple[Transition, ...]
    start: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Loop(Region):
    variable: str = ""
    init: str = ""
    condition: str | None = None
    update: str = ""
    is_inverted: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return self.init, self.condition or "", self.update


@dataclasses.dataclass(frozen=True, eq=False)
class Branch:
    """What runs, one after the other, if a condition holds; None always holds, and stands for 'else'."""

    condition: str | None
    body: tuple[Block | Transition, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Conditional(Block):
    """Branches, of which the first runs whose condition holds."""

    branches: tuple[Branch, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Sdfg(Region):
    """
    An SDFG, which may be nested in another one. `symbols` have their types, `constants` their values; `init_code` are
    the texts of code in the initialisation of its library.
    """

    name: str = ""
    containers: Mapping[str, Container] = dataclasses.field(default_factory=dict)
    symbols: Mapping[str, str] = dataclasses.field(default_factory=dict)
    constants: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    init_code: tuple[str, ...] = ()


# --- All of something -------------------------------------------------------------------------------------------------


def blocks_in(block: Block) -> Iterator[Block]:
    """A block and all blocks in it, but not those of nested SDFGs."""
    yield block
    if isinstance(block, Region):
        for inner in block.blocks.values():
            yield from blocks_in(inner)
    elif isinstance(block, Conditional):
        for branch in block.branches:
            for step in branch.body:
                if isinstance(step, Block):
                    yield from blocks_in(step)


def regions_in(block: Block) -> Iterator[Region]:
    return (each for each in blocks_in(block) if isinstance(each, Region))


def states_in(block: Block) -> Iterator[State]:
    return (each for each in blocks_in(block) if isinstance(each, State))


def assigned_in(region: Region) -> dict[str, set[str]]:
    """What the edges in a region assign to each symbol."""
    found: dict[str, set[str]] = {}
    for inner in regions_in(region):
        for edge in inner.edges:
            for name, text in edge.assignments.items():
                found.setdefault(name, set()).add(text)
    return found


def code_in(region: Region) -> Iterator[tuple[str, str]]:
    """The code on the edges of a region and in its conditions, each after the words for where it stands."""
    for edge in region.edges:
        yield from ((f"the assignment to '{name}'", text) for name, text in edge.assignments.items())
        yield "a condition", edge.condition or ""
    for block in region.blocks.values():
        if isinstance(block, Conditional):
            yield from ((f"the condition of '{block.label}'", each.condition or "") for each in block.branches)
    if isinstance(region, Loop):
        yield from (("a loop", text) for text in region.texts)


def nested_in(sdfg: Sdfg) -> Iterator[tuple[State, Node, Sdfg]]:
    """The SDFGs that are nested in this one, each with its node, but not those that are nested in them."""
    for state in states_in(sdfg):
        for node in state.nodes.values():
            if node.sdfg is not None:
                yield state, node, node.sdfg


def sdfgs_in(sdfg: Sdfg) -> Iterator[Sdfg]:
    """An SDFG and all that are nested in it."""
    yield sdfg
    for _, _, inner in nested_in(sdfg):
        yield from sdfgs_in(inner)


def words_in(*texts: str) -> Iterator[str]:
    """The words in expressions and conditions, each as often as it occurs: names, also of functions, and keywords."""
    for text in texts:
        yield from NAME.findall(text)
