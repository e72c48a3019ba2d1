"""
When the blocks of a region run.

A branch is a conditional block, or conditions on the edges between blocks, as it may be before DaCe's code generation.
Here, both are conditional blocks, as DaCe's ControlFlowRaising makes them. One condition is known to be the opposite of
another if it is the other one after 'not'.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import graphlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gtstub.stub.sdfg.model import Block, Branch, Conditional, Region, Transition
from gtstub.stub.signature.expressions import syntax_tree

Steps = tuple[Block | Transition, ...]
"""Blocks in the order in which they run, and the edges that are taken between them."""


@dataclasses.dataclass(frozen=True)
class Flow:
    """What runs in `steps`, one after the other, and `others` of which it is not known when they run, and whether."""

    steps: Steps
    others: Steps = ()


def flow(region: Region) -> Flow:
    """
    The control flow of a region. Blocks on and behind a cycle are among the others, and so are those that two branches
    share, unless all branches lead there, and those behind a branch that may end the region.
    """
    first = first_block(region)
    steps = () if first is None else _Lifting(region).steps(first)
    known = set(_in(steps))
    every: Steps = (*region.blocks.values(), *region.edges)
    return Flow(steps, tuple(each for each in every if each not in known))


def _in(steps: Steps) -> Iterator[Block | Transition]:
    for step in steps:
        yield step
        for branch in step.branches if isinstance(step, Conditional) and step.id == LIFTED else ():
            yield from _in(branch.body)


def first_block(region: Region) -> Block | None:
    """The first block of a region. As in DaCe, `start` counts only if the edges do not tell which one it is."""
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


LIFTED = -1
"""The number of a conditional block that stands for conditions on edges."""


class _Lifting:
    """The blocks of a region, with the edges that leave each one."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._out: dict[int, list[Transition]] = {block: [] for block in region.blocks}
        for edge in region.edges:
            self._out[edge.src].append(edge)
        self._into = collections.Counter(edge.dst for edge in region.edges)
        self._successors = {name: [edge.dst for edge in edges] for name, edges in self._out.items()}

    def steps(self, first: Block) -> Steps:
        """The blocks from the first one on, as far as their order is known."""
        return () if self._into[first.id] else self._sequence(first.id, None)[0]

    def _sequence(self, block: int, end: int | None) -> tuple[Steps, bool]:
        """The blocks from one to that before `end`, and whether `end` is sure to be reached behind them."""
        found: list[Block | Transition] = []
        while True:
            found.append(self._region.blocks[block])
            edges = self._out[block]
            if not edges:
                return tuple(found), end is None
            if len(edges) == 1 and edges[0].condition is None:
                found.append(edges[0])
                after, goes_on = edges[0].dst, True
            elif self._order is None:
                return tuple(found), False
            else:
                later = self._always[block] - {block} if _are_all_cases(edges) else ()
                join = max(later, key=self._order.index, default=end)
                conditional, goes_on = self._conditional(block, edges, join)
                found.append(conditional)
                if join is None:
                    return tuple(found), goes_on
                after = join
            if after == end or not goes_on or not self._is_only_behind(block, after):
                return tuple(found), goes_on and after == end
            block = after

    def _conditional(self, block: int, edges: Sequence[Transition], end: int | None) -> tuple[Conditional, bool]:
        """The branches behind a block, up to `end`, and whether `end` is sure to be reached."""
        branches = []
        goes_on = _are_all_cases(edges)
        for number, edge in enumerate(edges):
            body: Steps = (edge,)
            if edge.dst != end:
                inner, is_sure = self._sequence(edge.dst, end) if self._into[edge.dst] == 1 else ((), False)
                body, goes_on = (edge, *inner), goes_on and is_sure
            is_else = number == 1 and _are_opposite(edges[0].condition, edge.condition)
            branches.append(Branch(None if is_else else edge.condition, body))
        label = f"conditional_{self._region.blocks[block].label}"
        return Conditional(LIFTED, "ConditionalBlock", label, tuple(branches)), goes_on

    def _is_only_behind(self, block: int, after: int) -> bool:
        """Whether a block runs once, and only after another one that leads there."""
        if self._order is None or self._into[after] == 1:
            return self._into[after] == 1
        behind = {block, *reached(block, self._successors)}
        return all(edge.src in behind for edge in self._region.edges if edge.dst == after)

    @functools.cached_property
    def _order(self) -> Sequence[int] | None:
        """A block comes after its successors. None if there is a cycle."""
        try:
            return tuple(graphlib.TopologicalSorter(self._successors).static_order())
        except graphlib.CycleError:
            return None

    @functools.cached_property
    def _always(self) -> Mapping[int, set[int]]:
        """The blocks that run after each block, whatever branches are taken, with the block itself."""
        found: dict[int, set[int]] = {}
        for name in self._order or ():
            after = [found[each] for each in self._successors[name]]
            found[name] = {name} | (set.intersection(*after) if after else set())
        return found


def _are_all_cases(edges: Sequence[Transition]) -> bool:
    """Whether one of these edges is always taken."""
    conditions = [edge.condition for edge in edges]
    return None in conditions or (len(conditions) == 2 and _are_opposite(*conditions))


def _are_opposite(one: str | None, other: str | None) -> bool:
    """Whether one of two conditions is that the other one is false."""
    if one is None or other is None:
        return False
    (a, is_negated), (b, is_other_negated) = _without_not(one), _without_not(other)
    return a == b and is_negated != is_other_negated


def _without_not(text: str) -> tuple[str, bool]:
    """A condition without 'not' before it, and whether that turns its meaning around."""
    tree, is_negated = syntax_tree(text), False
    while isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        tree, is_negated = tree.operand, not is_negated
    return text if tree is None else ast.unparse(tree), is_negated
