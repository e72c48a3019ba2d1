"""Leaves, slots and what was compiled in, from a call plan."""

from __future__ import annotations

import graphlib
import math
from collections.abc import Mapping
from typing import Any

from gtstub.stub.codegen.hosts.fortran import FortranInterface
from gtstub.stub.plan.model import CallPlan, FieldLeaf, Members, Metric
from gtstub.stub.plan.model import Leaf as PlanLeaf
from gtstub.stub.plan.wording import Use, agreements, uses
from gtstub.tools.report.model import Constant, Leaf, Slot, UsedWhen


def leaves(plan: CallPlan, interface: FortranInterface | None) -> tuple[Leaf, ...]:
    """The arguments that calls pass. A static one is among `constants`."""
    declared = {} if interface is None else {each.name: each.declaration for each in interface.arguments}
    return tuple(
        Leaf(
            index=leaf.index,
            path=leaf.path,
            name=leaf.name,
            kind=leaf.kind,
            contract=leaf.text,
            device=leaf.array.device if isinstance(leaf, FieldLeaf) else "",
            used=_used(plan, leaf),
            agrees=tuple(each.text for each in agreements(plan) if each.leaf is leaf),
            fortran=declared.get(leaf.name, ""),
            slots=tuple(slot.index for slot in plan.slots_of(leaf) if slot.index >= 0),
        )
        for leaf in plan.arguments
    )


def slots(plan: CallPlan) -> tuple[Slot, ...]:
    return tuple(
        Slot(
            index=slot.index,
            name=slot.name,
            c_type=slot.c_type,
            kind=slot.source.kind,
            source=slot.source.text,
            leaf=None if isinstance(slot.source, Metric | Members) else slot.source.leaf.index,
        )
        for slot in plan.slots
    )


def constants(plan: CallPlan, baked: Mapping[str, Any]) -> tuple[Constant, ...]:
    """What was compiled in: static arguments, values that the program uses, and properties of axes."""
    static = [Constant(leaf.path, _number(leaf.value), f"argument, {leaf.dtype}") for leaf in plan.statics]
    fields: dict[tuple[str, str], list[str]] = {}
    for leaf in plan.fields:
        for number, axis in enumerate(leaf.axes):
            for name, value in axis.fixed.given.items():
                fields.setdefault((f"{name} of axis {number}, {axis.dim}", str(value)), []).append(f"'{leaf.path}'")
    fixed = [Constant(name, value, f"of {', '.join(those)}") for (name, value), those in fields.items()]
    named = {each.name for each in static}
    others = [
        Constant(name, _number(value), "used by the program") for name, value in baked.items() if name not in named
    ]
    return (*static, *others, *fixed)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return repr(value) if math.isfinite(value) else str(value)


def _used(plan: CallPlan, leaf: PlanLeaf) -> tuple[UsedWhen, ...]:
    """
    The indices used on all axes together, in the order of the axes, for each set of conditions once. What fewer
    conditions say as well is left out.
    """
    by_conditions: dict[tuple[str, ...], list[Use]] = {}
    for use in uses(plan, leaf):
        by_conditions.setdefault(use.when, []).append(use)
    by_axis = {
        conditions: "; ".join(use.text for use in sorted(found, key=lambda use: use.axis))
        for conditions, found in by_conditions.items()
    }
    return tuple(
        UsedWhen(indices, " and ".join(conditions), conditions)
        for conditions, indices in by_axis.items()
        if not any(set(fewer) < set(conditions) and by_axis[fewer] == indices for fewer in by_axis)
    )


def axis_order(plan: CallPlan) -> tuple[str, ...]:
    """The dimensions of all fields in one order, in which all fields have theirs if there is such an order."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for leaf in plan.fields:
        dims = [axis.dim for axis in leaf.axes]
        for number, dim in enumerate(dims):
            sorter.add(dim, *dims[:number])
    try:
        return tuple(sorter.static_order())
    except graphlib.CycleError:
        return tuple(dict.fromkeys(axis.dim for leaf in plan.fields for axis in leaf.axes))
