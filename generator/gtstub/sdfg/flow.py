"""
When the blocks of a region run.

A branch is a conditional block, or conditions on the edges between blocks, as it may be before DaCe's code generation.
Here, both are conditional blocks. DaCe makes the same of a region (ControlFlowRaising).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import graphlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from gtstub.sdfg.model import ALWAYS, Block, Branch, Conditional, Region, Transition
from gtstub.signature.expressions import syntax_tree

Steps = tuple[Block | Transition, ...]
"""Blocks in the order in which they run, and the edges that are taken between them."""


@dataclasses.dataclass(frozen=True)
class Flow:
    """What runs in `steps`, one after the other, and `others` of which it is not known when they run, and whether."""

    steps: Steps
    others: Steps = ()


def flow(region: Region) -> Flow:
    """
    The control flow of a region. In one with cycles, or with branches that share more than what follows all of them,
    only the blocks before these have an order.
    """
    lifting = _Lifting(region)
    first = first_block(region)
    try:
        if first is None:
            raise _UnstructuredError
        steps = lifting.sequence(first.id, None)
        if lifting.has_all:
            return Flow(steps)
    except (_UnstructuredError, graphlib.CycleError):
        pass
    steps = lifting.beginning(first)
    every: Steps = (*region.blocks.values(), *region.edges)
    return Flow(steps, tuple(each for each in every if each not in steps))


def first_block(region: Region) -> Block | None:
    """The first block of a region. As in DaCe, `start` counts only if several blocks have no edge to them."""
    later = {edge.dst for edge in region.edges}
    sources = [block for number, block in region.blocks.items() if number not in later]
    if len(sources) == 1:
        return sources[0]
    return None if region.start is None else region.blocks.get(region.start)


def in_order(region: Region) -> Sequence[Block]:
    """The blocks of a region in the order of its edges; those on a cycle follow as in the document."""
    return [region.blocks[each] for each in sorted_by(region.blocks, [(edge.src, edge.dst) for edge in region.edges])]


def sorted_by(names: Iterable[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Numbers in the order of edges between them; those on a cycle, and behind it, follow as they are given."""
    after: dict[int, list[int]] = {name: [] for name in names}
    before = dict.fromkeys(after, 0)
    for source, target in edges:
        before[target] += 1
        after[source].append(target)
    ready = [name for name, count in before.items() if count == 0]
    for name in ready:  # It grows meanwhile.
        for target in after[name]:
            before[target] -= 1
            if before[target] == 0:
                ready.append(target)
    return list(dict.fromkeys((*ready, *after)))


def successors[T](edges: Iterable[tuple[T, T]]) -> dict[T, list[T]]:
    """What edges lead to from each of their sources."""
    found: dict[T, list[T]] = {}
    for source, target in edges:
        found.setdefault(source, []).append(target)
    return found


def reached[T](start: T, after: Mapping[T, Collection[T]]) -> dict[T, None]:
    """What edges lead to from a start, in no order. The start is in it if there is a cycle."""
    seen: dict[T, None] = {}
    pending = list(after.get(start, ()))
    while pending:
        if (each := pending.pop()) not in seen:
            seen[each] = None
            pending += after.get(each, ())
    return seen


def only_behind(region: Region, edge: Transition) -> Steps:
    """The blocks of a region that run only after an edge was taken, and the edges from them."""
    if (first := first_block(region)) is None:
        return ()
    others = [each for each in region.edges if each is not edge]
    before = {first.id, *reached(first.id, successors((each.src, each.dst) for each in others))}
    blocks = (block for number, block in region.blocks.items() if number not in before)
    return (*blocks, *(each for each in others if each.src not in before))


class _UnstructuredError(Exception):
    """Branches share a block other than that after all of them, or a region may end in the middle of one."""


class _Lifting:
    """The blocks of a region, with the edges that leave each one."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._out: dict[int, list[Transition]] = {block: [] for block in region.blocks}
        for edge in region.edges:
            self._out[edge.src].append(edge)
        self._seen: set[int] = set()

    @property
    def has_all(self) -> bool:
        return len(self._seen) == len(self._out)

    def beginning(self, block: Block | None) -> Steps:
        """The blocks from the first one to that which leads to several, or to which several lead."""
        into = [edge.dst for edge in self._region.edges]
        steps: list[Block | Transition] = []
        while block is not None and (not steps or into.count(block.id) == 1) and block not in steps:
            if not steps and block.id in into:
                break
            steps.append(block)
            match self._out[block.id]:
                case [edge] if edge.condition == ALWAYS and into.count(edge.dst) == 1:
                    steps.append(edge)
                    block = self._region.blocks[edge.dst]
                case _:
                    break
        return tuple(steps)

    def sequence(self, first: int, end: int | None) -> Steps:
        """The blocks from `first` to that before `end`."""
        found: list[Block | Transition] = []
        block: int | None = first
        while block is not None and block != end:
            if block in self._seen:
                raise _UnstructuredError
            self._seen.add(block)
            found.append(self._region.blocks[block])
            match self._out[block]:
                case []:
                    if end is not None:
                        raise _UnstructuredError
                    block = None
                case [edge] if edge.condition == ALWAYS:
                    found.append(edge)
                    block = edge.dst
                case edges:
                    after = self._after(block, edges, end)
                    found.append(self._conditional(block, edges, end if after is None else after))
                    block = after
        return tuple(found)

    def _conditional(self, block: int, edges: Sequence[Transition], end: int | None) -> Conditional:
        branches = []
        for number, edge in enumerate(edges):
            is_else = edge.condition == ALWAYS or (number == 1 and _are_opposite(edges[0].condition, edge.condition))
            body = (edge, *self.sequence(edge.dst, end))
            branches.append(Branch(None if is_else else edge.condition, body))
        label = f"conditional_{self._region.blocks[block].label}"
        return Conditional(-1, "ConditionalBlock", label, tuple(branches))

    def _after(self, block: int, edges: Sequence[Transition], end: int | None) -> int | None:
        """
        The first block that runs after all branches behind a block. If it may be that none of them is taken, the region
        ends there.
        """
        if not _are_all_cases([edge.condition for edge in edges]):
            if end is not None:
                raise _UnstructuredError
            return None
        later = self._always[block] - {block}
        return max(later, key=self._order.index, default=None)

    @functools.cached_property
    def _order(self) -> Sequence[int]:
        """A block comes after its successors."""
        return tuple(
            graphlib.TopologicalSorter(
                {name: [edge.dst for edge in edges] for name, edges in self._out.items()}
            ).static_order()
        )

    @functools.cached_property
    def _always(self) -> Mapping[int, set[int]]:
        """The blocks that run after each block, whatever branches are taken, with the block itself."""
        found: dict[int, set[int]] = {}
        for name in self._order:
            after = [found[edge.dst] for edge in self._out[name]]
            found[name] = {name} | (set.intersection(*after) if after else set())
        return found


def _are_all_cases(conditions: Sequence[str]) -> bool:
    """Whether one of these conditions always holds."""
    return ALWAYS in conditions or (len(conditions) == 2 and _are_opposite(*conditions))


def _are_opposite(one: str, other: str) -> bool:
    """Whether one of two conditions is that the other one is false."""
    (a, is_negated), (b, is_other_negated) = _without_not(one), _without_not(other)
    return a == b and is_negated != is_other_negated


def _without_not(text: str) -> tuple[str, bool]:
    """A condition without 'not', and whether it had one."""
    match syntax_tree(text):
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand), True
        case None:
            return text, False
        case tree:
            return ast.unparse(tree), False
