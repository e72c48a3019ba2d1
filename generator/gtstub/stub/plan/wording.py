"""Says in words what a plan decides, for comments, tables and reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gtstub.stub.plan.model import CallPlan, FieldLeaf, Leaf, Members, Metric, Unused, walk
from gtstub.stub.signature.expressions import Expression, extremum
from gtstub.stub.signature.model import Condition

MOST_NAMES = 6
"""The most symbols that a sentence lists; it counts more. The JSON document lists all."""


# --- Indices ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Use:
    """The `indices` that a call is sure to access on an axis of dimension `dim`, if all conditions of `when` hold."""

    axis: int
    dim: str
    indices: str
    when: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.dim} {self.indices}"

    @property
    def condition(self) -> str:
        return " and ".join(self.when)


def indices_used(plan: CallPlan, leaf: Leaf) -> tuple[str, ...]:
    """
    For each axis of a field the indices that a call is sure to access: 'K 0 to 9', 'Edge start to end - 1 if start <
    end', or 'Vertex as in E2C2V' if a table has them.
    """
    return tuple(f"{use.text} if {use.condition}" if use.when else use.text for use in uses(plan, leaf))


def uses(plan: CallPlan, leaf: Leaf) -> Iterator[Use]:
    """The same, one by one."""
    if not isinstance(leaf, FieldLeaf):
        return
    for number, axis in enumerate(leaf.axes):
        if axis.used is not None:
            yield Use(number, axis.dim, f"{axis.used[0]} to {axis.used[1]}")
    for bounds in plan.bounds:
        when = tuple(_condition(plan, each) for each in bounds.when)
        for used in bounds.indices:
            ends = f"{extremum('min', used.lowest)} to {extremum('max', used.highest)}"
            yield from (Use(axis, leaf.axes[axis].dim, ends, when) for each, axis in used.of.axes if each is leaf)
        for table in bounds.tables:
            if table.leaf is leaf:
                number, plus = table.follow.axis or 0, table.follow.plus
                added = "" if plus == Expression() else f", each plus {plus}"
                yield Use(number, leaf.axes[number].dim, f"as in {table.table.path}{added}", when)


def _condition(plan: CallPlan, condition: Condition) -> str:
    """A condition, or the fact that it is about: 'dt > 0.5', 'not dt > 0.5'."""
    for fact in plan.facts:
        if fact.name in condition.left.symbols | condition.right.symbols:
            return fact.text if condition.relation == "!=" else f"not ({fact.text})"
    return str(condition)


def accesses_not_known(plan: CallPlan) -> tuple[str, ...]:
    """For each array the accesses of which it is not known which elements they reach."""
    fields = {leaf.name: leaf for leaf in plan.fields}
    return tuple(
        f"'{fields[each.array].path}': {each.count} access{'' if each.count == 1 else 'es'} {each.why}"
        for each in plan.unknown
        if each.array in fields
    )


# --- Agreements and remarks -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Agreement:
    """What calls check between arguments: of `leaf`, and about `symbol`, which may be empty, in the words `text`."""

    leaf: Leaf | None
    symbol: str
    text: str


def agreements(plan: CallPlan) -> Iterator[Agreement]:
    for assertion in plan.assertions:
        first, later = assertion.first, assertion.later
        leaf = None if isinstance(later, Metric | Members) else later.leaf
        yield Agreement(leaf, assertion.symbol, f"{later.text} equals {first.text}")
    for each in plan.required_shapes:
        text = f"{each.name} of axis {each.axis} of '{each.leaf.path}' is {each.text}"
        yield Agreement(each.leaf, "", text)


def remarks(plan: CallPlan) -> Iterator[str]:
    """Sentences about unused parts of arguments, the handle, lent memory, and accesses that are not known."""
    unused = [f"'{part.path}'" for node in plan.parameters for part in walk(node) if isinstance(part, Unused)]
    if unused:
        yield f"The SDFG does not use {', '.join(unused)}."
    if plan.init:
        symbols = [f"'{slot.name}'" for slot in plan.init]
        what = ", ".join(symbols) if len(symbols) <= MOST_NAMES else f"{len(symbols)} symbols"
        memory = " or ".join(f"'{slot.name}'" for slot in plan.memory_symbols)
        again = f", and again when {memory} changes" if memory else ""
        yield f"The first call initialises the SDFG with {what}{again}."
    else:
        yield "The SDFG is initialised when the program is loaded."
    if unknown := accesses_not_known(plan):
        yield f"Not known which elements are accessed: {'; '.join(unknown)}."
    if plan.unneeded:
        names = ", ".join(f"'{path}'" for path in plan.unneeded)
        yield f"The SDFG may read elements on which no result depends, and which calls do not check, of {names}."
    for workspace in plan.workspaces:
        yield f"The caller lends memory in '{workspace.storage}' on {workspace.device}."
