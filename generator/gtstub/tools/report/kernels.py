"""
The maps of an SDFG that are not inside another one, in the order of a call, and which of them reads what another wrote.

Each becomes a loop nest of the generated C++, or a kernel on a GPU. Branches and loops of the SDFG are followed; two
maps of which only one can run do not depend on each other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from gtstub.stub.sdfg.dataflow import around, outermost
from gtstub.stub.sdfg.flow import flow, in_order, sorted_by
from gtstub.stub.sdfg.model import Block, Conditional, Edge, Loop, Node, Region, Sdfg, State, Transition, states_in
from gtstub.stub.signature.roles import MAP_VARIABLE


@dataclasses.dataclass(frozen=True)
class ReadFrom:
    """A kernel reads arrays that the one with the index `kernel` has written, directly or through copies."""

    kernel: int
    data: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """
    A map. `where` has the conditions of the branches and loops around it, outermost first, and `state` is the label of
    its state. `dims` are the dimensions of its ranges, 'Edge, K'; `ranges` are 'Edge 0:27', 'K 0:nlev:2'. `reads` and
    `writes` name arrays of the outermost SDFG, or 'inner.name' in a nested one; sorted. `tasklets` counts the
    computations in it, in nested SDFGs too. `depth` is the number of kernels before it in the longest chain of those
    that it reads from.
    """

    index: int
    label: str
    state: str
    where: tuple[str, ...]
    dims: str
    ranges: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    reads_from: tuple[ReadFrom, ...]
    tasklets: int
    depth: int

    @property
    def writers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Each array that it reads, with the kernels that have written it."""
        return tuple((name, tuple(each.kernel for each in self.reads_from if name in each.data)) for name in self.reads)

    def with_axes(self, order: Sequence[str]) -> Kernel:
        """The same with its dimensions in this order. Those that are not in it come last."""
        dims = self.dims.split(", ") if self.ranges else []
        place = {dim: order.index(dim) if dim in order else len(order) for dim in dims}
        pairs = sorted(zip(dims, self.ranges, strict=True), key=lambda pair: place[pair[0]])
        return dataclasses.replace(
            self, dims=", ".join(dim for dim, _ in pairs), ranges=tuple(range_ for _, range_ in pairs)
        )


Writers = dict[str, dict[int, str]]
"""
For each array the kernels whose writes may still be in it, each with the subset that it wrote; the subset is empty if
it is not known.
"""


@dataclasses.dataclass(frozen=True)
class _Place:
    """
    Where the walk is: the conditions around it, the label of the state, and what the arrays of a nested SDFG are called
    outside. Other arrays of a nested SDFG get the `prefix`.
    """

    where: tuple[str, ...] = ()
    state: str = ""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""

    def under(self, condition: str) -> _Place:
        return dataclasses.replace(self, where=(*self.where, condition))

    def array(self, node: Node) -> str | None:
        """The name of an access node's array; None for other nodes."""
        return self.names.get(node.container, self.prefix + node.container) if node.container else None


def kernels(sdfg: Sdfg) -> tuple[Kernel, ...]:
    """The kernels of an SDFG."""
    walk = _Walk([])
    walk.region(sdfg, _Place(), {})
    return tuple(walk.kernels)


@dataclasses.dataclass(frozen=True)
class _Walk:
    """The kernels that were found so far."""

    kernels: list[Kernel]

    def region(self, region: Region, place: _Place, writers: Writers) -> None:
        """Adds the kernels of an SDFG or a region of its control flow, and changes `writers` as the region does."""
        found = flow(region)
        self._steps(found.steps if not found.others else in_order(region), place, writers)

    def _steps(self, steps: Iterable[Block | Transition], place: _Place, writers: Writers) -> None:
        for block in steps:
            match block:
                case State():
                    self._state(block, dataclasses.replace(place, state=block.label), writers)
                case Conditional():
                    self._branches(block, place, writers)
                case Loop():
                    self.region(block, place.under(f"while {block.condition}" if block.condition else "loop"), writers)
                case Region():
                    self.region(block, place, writers)

    def _branches(self, block: Conditional, place: _Place, writers: Writers) -> None:
        before = {data: dict(those) for data, those in writers.items()}
        earlier: list[str] = []
        for branch in block.branches:
            text = branch.condition or f"not ({' or '.join(earlier)})"
            earlier.append(text)
            inner = {data: dict(those) for data, those in before.items()}
            self._steps(branch.body, place.under(text), inner)
            for data, those in inner.items():
                writers.setdefault(data, {}).update(those)

    def _state(self, state: State, place: _Place, writers: Writers) -> None:
        outer = {number: node for number, node in state.nodes.items() if outermost(state, number) == number}
        pairs = []
        into: dict[int, list[Edge]] = {number: [] for number in outer}
        out: dict[int, list[Edge]] = {number: [] for number in outer}
        for edge in state.edges:
            source, target = outermost(state, edge.src), outermost(state, edge.dst)
            if source != target:
                pairs.append((source, target))
                if edge.data is not None:
                    out[source].append(edge)
                    into[target].append(edge)
        for node in (outer[number] for number in sorted_by(outer, pairs)):
            read = [(name, edge) for edge in into[node.id] if (name := place.array(state.nodes[edge.src]))]
            written = [(name, edge) for edge in out[node.id] if (name := place.array(state.nodes[edge.dst]))]
            if node.is_entry:
                self._kernel(node, state, place, read, written, writers)
            elif node.sdfg is not None:
                names = {str(edge.dst_connector): name for name, edge in read}
                names |= {str(edge.src_connector): name for name, edge in written}
                prefix = f"{place.prefix}{node.label}."
                self.region(node.sdfg, _Place(place.where, "", names, prefix), writers)
            else:  # A copy or a single computation passes on what it reads.
                copied = place.array(node)
                sources = {name for name, _ in read} if copied is None else {copied}
                through = {kernel: "" for name in sources for kernel in writers.get(name, ())}
                for name, _ in written:
                    writers.setdefault(name, {}).update(through)

    def _kernel(
        self,
        node: Node,
        state: State,
        place: _Place,
        read: Sequence[tuple[str, Edge]],
        written: Sequence[tuple[str, Edge]],
        writers: Writers,
    ) -> None:
        index = len(self.kernels)
        reads = sorted({name for name, _ in read} | {name for name, edge in written if edge.is_wcr})
        reads_from: dict[int, list[str]] = {}
        for name in reads:
            for writer in writers.get(name, ()):
                reads_from.setdefault(writer, []).append(name)
        for name, edge in written:
            subset = (
                ",".join(f"{each.start}:{each.end}:{each.step}" for each in edge.subset.ranges) if edge.subset else ""
            )
            before, is_whole = writers.get(name, {}), bool(subset) and not (edge.is_wcr or edge.is_dynamic)
            kept = {kernel: other for kernel, other in before.items() if other != subset or not is_whole}
            writers[name] = {**kept, index: subset}
        dims = [found["dimension"] if (found := MAP_VARIABLE.search(name)) else name for name in node.variables]
        made = Kernel(
            index=index,
            label=node.label,
            state=place.state,
            where=place.where,
            dims=", ".join(dims),
            ranges=tuple(
                f"{dim} {each.start}:{_after(each.end)}" + ("" if each.step == "1" else f":{each.step}")
                for dim, each in zip(dims, node.ranges.ranges, strict=True)
            ),
            reads=tuple(reads),
            writes=tuple(sorted({name for name, _ in written})),
            reads_from=tuple(ReadFrom(writer, tuple(data)) for writer, data in sorted(reads_from.items())),
            tasklets=sum(_tasklets(each) for each in state.nodes.values() if node in around(state, each)),
            depth=1 + max((self.kernels[writer].depth for writer in reads_from), default=-1),
        )
        self.kernels.append(made)


def _tasklets(node: Node) -> int:
    """The tasklets that a node is or contains."""
    if node.sdfg is None:
        return int(node.kind == "Tasklet")
    return sum(_tasklets(inner) for state in states_in(node.sdfg) for inner in state.nodes.values())


def _after(end: str) -> str:
    """The value after the last one, because ranges of DaCe include their end."""
    if re.fullmatch(r"-?\d+", end):
        return str(int(end) + 1)
    if found := re.fullmatch(r"(-?\d+) \+ (.+)", end):
        number, rest = int(found[1]) + 1, found[2]
    elif found := re.fullmatch(r"(.+) - (\d+)", end):
        number, rest = 1 - int(found[2]), found[1]
    else:
        number, rest = 1, end
    return rest if number == 0 else f"{rest} {'-' if number < 0 else '+'} {abs(number)}"
