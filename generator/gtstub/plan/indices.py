"""Says in words which indices of its arguments a program uses, for comments and tables."""

from __future__ import annotations

from collections.abc import Iterator

from gtstub.plan.model import CallBounds, CallPlan, FieldLeaf, Leaf
from gtstub.signature.expressions import Expression, extremum
from gtstub.signature.model import Condition


def indices_used(plan: CallPlan, leaf: Leaf) -> tuple[str, ...]:
    """
    For each axis of a field the indices that a call is sure to access: 'K 0 to 9', 'Edge start to end - 1 if start <
    end', or 'Vertex as in E2C2V' if a table has them.
    """
    return tuple(_parts(plan, leaf)) if isinstance(leaf, FieldLeaf) else ()


def _parts(plan: CallPlan, leaf: FieldLeaf) -> Iterator[str]:
    for axis in leaf.axes:
        if axis.used is not None:
            yield f"{axis.dim} {axis.used[0]} to {axis.used[1]}"
    for bounds in plan.bounds:
        for used in bounds.indices:
            ends = f"{extremum('min', used.lowest)} to {extremum('max', used.highest)}"
            yield from (
                f"{leaf.axes[axis].dim} {ends}{_if(plan, bounds)}" for each, axis in used.of.axes if each is leaf
            )
        for table in bounds.tables:
            if table.leaf is leaf:
                plus = "" if table.plus == Expression() else f", each plus {table.plus}"
                yield f"{leaf.axes[table.axis].dim} as in {table.table.path}{plus}{_if(plan, bounds)}"


def _if(plan: CallPlan, bounds: CallBounds) -> str:
    return f" if {' and '.join(_condition(plan, each) for each in bounds.when)}" if bounds.when else ""


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
