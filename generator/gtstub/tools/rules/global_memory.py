"""
Rule 1 of background 5 (3 of ADR-18): global memory is input or output, or its output depends on it elementwise.

Decides, for each array of the outermost SDFG that is read and written:
  - in one map, copy or tasklet: the indices are compared. Equal points in all of its parameters are elementwise, if
    the read comes before the write; otherwise they race. Indices that never meet are harmless, if no variable of a map
    or loop is in them; anything else breaks the rule. What a nested SDFG does with more than one element is unknown.
  - in two maps of a state: a read that comes after the write is harmless; without an order between them it is a race,
    unless their ranges never meet.
  - a read that comes before the write, in this state or in another one: it breaks the rule if the write depends on it
    over transients, and the indices along the way exchange axes, or add up to a shift that is a number other than 0.
    It is unknown if the write depends on the read, and on the way an index is looked up, constant or a range, a view
    is used, or the shifts add up to a symbol.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from gtstub.stub.sdfg.dataflow import Dataflow, outermost
from gtstub.stub.sdfg.flow import reached, successors
from gtstub.stub.sdfg.model import Edge, Loop, Node, regions_in, words_in
from gtstub.stub.signature.expressions import Expression, symbol
from gtstub.tools.rules.indices import Axis, Indices, are_apart, are_point, indices_of
from gtstub.tools.rules.model import Found, Level, Place

_USES: Mapping[str, tuple[Level, str]] = {
    "race": ("error", "a map reads it without an order before or after the one that writes it"),
    "race in a map": ("error", "a branch in a map reads it without an order before the write of the same map"),
    "not elementwise": ("error", "it is read and written at different indices by the same map or copy"),
    "shifted": ("error", "it is written at other indices than those at which it was read for this, over transients"),
    "maybe shifted": (
        "unknown",
        "it is written, over transients, maybe at other indices than those at which it was read for this",
    ),
    "unknown": ("unknown", "a nested SDFG or library node reads and writes it, maybe at different indices"),
    "elementwise": ("info", "it is input and output, elementwise"),
    "apart": ("info", "it is input and output, at indices that never meet"),
    "in order": ("info", "it is input and output, in a fixed order"),
}

_ZERO = Expression()

_MOST_WAYS = 500
"""After so many, the search for shifts ends."""


def rule_1(place: Place) -> Iterator[Found]:
    states = [] if place.path else [_Scopes(flow) for flow in place.states]
    reads, writes = {name for each in states for name in each.reads}, {name for each in states for name in each.writes}
    transients = {name for name, each in place.sdfg.containers.items() if each.is_transient}
    scalars = {name for name, each in place.sdfg.containers.items() if each.kind == "Scalar"}
    arrays = (reads & writes & place.sdfg.containers.keys()) - transients - scalars
    loops = {each.variable for each in regions_in(place.sdfg) if isinstance(each, Loop)}
    every = (way for each in states if arrays for way in each.ways(arrays | transients))
    ways = dict.fromkeys(way for way in every if way.source != way.target)
    for data in arrays:
        uses = [(use, each.label) for each in states for use in sorted(each.uses(data, loops))]
        found = [(use, label) for use, label in uses if _USES[use][0] != "info"]
        if not found:
            over_others = [way for way in ways if {way.source, way.target} <= {data, *transients}]
            found = [*_shifted(over_others, data), *uses, ("in order", "")][:1]
        yield from ((_USES[use][0], label, data, _USES[use][1]) for use, label in found)


class _End(NamedTuple):
    """An access inside of maps: by which node, at which indices, and the entries of these maps."""

    node: Node
    indices: Indices
    maps: tuple[Node, ...]

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for entry in self.maps for name in entry.variables)


class _Shift(NamedTuple):
    """The axis that is read for an axis that is written, and how much further on."""

    axis: int
    by: Expression


Shifts = tuple[_Shift | None, ...]
"""For each axis that is written; None where the two have no variable of a map in common. Empty if nothing is known."""


class _Way(NamedTuple):
    """From an array to another one by a map or copy, in the state with this label."""

    source: str
    target: str
    shifts: Shifts
    label: str


class _Scopes:
    """A state with its outermost maps as wholes. `reads` and `writes` are the edges at the access nodes of arrays."""

    def __init__(self, flow: Dataflow) -> None:
        self.label = flow.state.label
        self.reads: dict[str, list[Edge]] = {}
        self.writes: dict[str, list[Edge]] = {}
        for node in flow.access_nodes:
            for edges, found in ((flow.outputs(node), self.reads), (flow.inputs(node), self.writes)):
                if edges:
                    found.setdefault(node.container, []).extend(edges)
        self._flow = flow
        pairs = [(edge.src, edge.dst) for edge in flow.state.edges]
        outer = ((self._outermost(src), self._outermost(dst)) for src, dst in pairs)
        self._leads, self._leads_outside = _order(pairs), _order((src, dst) for src, dst in outer if src != dst)

    def _outermost(self, node: int) -> int:
        return outermost(self._flow.state, node)

    def _inside(self, read: Edge, write: Edge) -> Iterator[tuple[_End, _End]]:
        """The accesses in a map that read what an edge brings, each with those that write what another takes away."""
        flow = self._flow
        reads = [_End(flow.nodes[each.dst], indices_of(flow.read(each)), maps) for each, maps in flow.inner(read)]
        writes = [_End(flow.nodes[each.src], indices_of(flow.write(each)), maps) for each, maps in flow.inner(write)]
        yield from itertools.product(reads, writes)

    def uses(self, data: str, loops: Set[str]) -> set[str]:
        """What a state does with an array that it reads and writes: names in _USES."""
        pairs = itertools.product(self.reads.get(data, ()), self.writes.get(data, ()))
        return {use for read, write in pairs for use in self._uses(read, write, loops)}

    def _uses(self, read: Edge, write: Edge, loops: Set[str]) -> Iterable[str]:
        reader, writer = self._outermost(read.dst), self._outermost(write.src)
        if reader == writer and not self._flow.container(reader):
            return [self._compared(*ends, loops) for ends in self._inside(read, write)]
        source, target = indices_of(self._flow.read(read)), indices_of(self._flow.write(write))
        if read is write:
            is_apart = are_apart(source, target, loops)
            return ["elementwise" if source == target is not None else "apart" if is_apart else "not elementwise"]
        if self._leads_outside(reader, writer) or self._leads_outside(writer, reader):
            return ["in order"]
        return ["apart" if are_apart(source, target, frozenset()) else "race"]

    def _compared(self, read: _End, write: _End, loops: Set[str]) -> str:
        """What one iteration reads, beside what it writes."""
        if are_apart(read.indices, write.indices, write.variables | loops):
            return "apart"
        if not (are_point(read.indices) and are_point(write.indices)):
            is_opaque = {read.node.kind, write.node.kind} & {"NestedSDFG", "LibraryNode"}
            return "unknown" if is_opaque else "not elementwise"
        ranges = [pair for each in write.maps for pair in zip(each.variables, each.ranges.ranges, strict=True)]
        indexing = {name for axis in write.indices or () for name in axis.names}
        if read.indices != write.indices or any(name not in indexing for name, each in ranges if not each.is_point):
            return "not elementwise"
        return "elementwise" if self._leads(read.node.id, write.node.id) else "race in a map"

    def ways(self, names: Set[str]) -> Iterator[_Way]:
        """The ways between arrays with these names, through the outermost maps and copies."""
        maps: dict[int, tuple[list[Edge], list[Edge]]] = {}
        for edge in self._flow.edges:
            source, target = self._flow.nodes[edge.src].container, self._flow.nodes[edge.dst].container
            src, dst = self._outermost(edge.src), self._outermost(edge.dst)
            if source in names and target in names and (src, dst) == (edge.src, edge.dst):
                yield _Way(source, target, self._copied(edge), self.label)
            elif source in names and src == edge.src:
                maps.setdefault(dst, ([], []))[0].append(edge)
            elif target in names and dst == edge.dst:
                maps.setdefault(src, ([], []))[1].append(edge)
        for edges in maps.values():
            for read, write in itertools.product(*edges):
                source, target = self._flow.nodes[read.src].container, self._flow.nodes[write.dst].container
                for ends in self._inside(read, write):
                    if self._leads(ends[0].node.id, ends[1].node.id):
                        yield _Way(source, target, _aligned(*ends), self.label)

    def _copied(self, edge: Edge) -> Shifts:
        read, write = indices_of(self._flow.read(edge)), indices_of(self._flow.write(edge))
        source, target = read or write or (), write or read or ()
        if "views" in (edge.src_connector, edge.dst_connector) or len(source) != len(target):
            return ()
        is_implied = read is None or write is None  # What is left out is the other one, or begins at 0.
        return tuple(
            _Shift(axis, a.start - b.start) if a.step == b.step and not (is_implied and a.start != _ZERO) else None
            for axis, (a, b) in enumerate(zip(source, target, strict=True))
        )


def _order(edges: Iterable[tuple[int, int]]) -> Callable[[int, int], bool]:
    """Whether edges lead from one node to another one, or the two are the same."""
    after = successors(edges)
    later = functools.cache(lambda node: {node, *reached(node, after)})
    return lambda one, other: other in later(one)


def _aligned(read: _End, write: _End) -> Shifts:
    """The shifts between two accesses in the same iteration."""
    parts = [_variable(each, read.variables) for each in read.indices or ()]
    source = {part[0]: _Shift(axis, part[1]) for axis, part in reversed([*enumerate(parts)]) if part}
    target = [_variable(each, read.variables) for each in write.indices or ()]
    return tuple(
        source[it[0]]._replace(by=source[it[0]].by - it[1]) if it and it[0] in source else None for it in target
    )


def _variable(index: Axis, variables: Set[str]) -> tuple[str, Expression] | None:
    """The variable of a point, and what is added to it. None if it has none or several, or does more with it."""
    for name in index.names & variables:
        rest = index.start - symbol(name)
        if not index.step and variables.isdisjoint(words_in(str(rest))):
            return name, rest
    return None


def _shifted(ways: Sequence[_Way], data: str) -> Sequence[tuple[str, str]]:
    """
    Whether an array is written at other indices than those at which it was read, over transients: "shifted" if an axis
    comes from another one along a way back to the array, or the sum of its shifts is a number other than 0; or "maybe
    shifted", with the label of the state. Nothing if there is no way back, or all sums are 0.
    """
    later = reached(data, successors((way.source, way.target) for way in ways))
    earlier = reached(data, successors((way.target, way.source) for way in ways))
    between: dict[str, list[_Way]] = {}
    for way in ways:
        if {way.source, way.target} <= later.keys() & earlier.keys():
            between.setdefault(way.source, []).append(way)
    seen: set[tuple[str, Shifts]] = set()
    pending: list[tuple[str, Shifts | None]] = [(data, None)]
    unknown: list[tuple[str, str]] = []
    while pending and len(seen) <= _MOST_WAYS:
        at, so_far = pending.pop()
        for _, target, shifts, label in between.get(at, ()):
            total = shifts if so_far is None else tuple(_added(so_far, each) for each in shifts)
            is_off = [it.axis != axis or (it.by.is_constant and it.by != _ZERO) for axis, it in enumerate(total) if it]
            if target != data:
                if (target, total) not in seen:
                    seen.add((target, total))
                    pending.append((target, total))
            elif any(is_off):
                return [("shifted", label)]
            elif not total or not all(each and each.by.is_constant for each in total):
                unknown.append(("maybe shifted", label))
    return unknown[:1]


def _added(before: Shifts, shift: _Shift | None) -> _Shift | None:
    first = before[shift.axis] if shift is not None and shift.axis < len(before) else None
    return None if first is None or shift is None else _Shift(first.axis, first.by + shift.by)
