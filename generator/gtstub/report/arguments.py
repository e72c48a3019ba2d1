"""Leaves, slots and what was compiled in, from a call plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gtstub.codegen.hosts.fortran import FortranInterface, make_interface
from gtstub.errors import PlanError
from gtstub.plan.indices import accesses_not_known, indices_used
from gtstub.plan.model import CallPlan, FieldLeaf, Metric, Unused, walk
from gtstub.plan.model import Leaf as PlanLeaf
from gtstub.report.model import Constant, Leaf, Slot, Use


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
            device=leaf.device if isinstance(leaf, FieldLeaf) else "",
            used=_used(plan, leaf),
            agrees=tuple(_agreements(plan, leaf)),
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
            leaf=None if isinstance(slot.source, Metric) else slot.source.leaf.index,
        )
        for slot in plan.slots
    )


def fortran(plan: CallPlan) -> FortranInterface | str:
    """The Fortran interface of a program, or the reason why it has none."""
    try:
        return make_interface(plan)
    except PlanError as error:
        return str(error)


def remarks(plan: CallPlan) -> tuple[str, ...]:
    """Sentences about unused parts of arguments, the handle, lent memory, and accesses that are not known."""
    return tuple(_remarks(plan))


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


def _used(plan: CallPlan, leaf: PlanLeaf) -> tuple[Use, ...]:
    """The indices used on all axes together, for each condition once."""
    by_condition: dict[str, list[str]] = {}
    for text in indices_used(plan, leaf):
        indices, _, condition = text.partition(" if ")
        by_condition.setdefault(condition, []).append(indices)
    return tuple(Use("; ".join(indices), condition) for condition, indices in by_condition.items())


def _agreements(plan: CallPlan, leaf: PlanLeaf) -> Iterator[str]:
    for assertion in plan.assertions:
        later = assertion.later
        if not isinstance(later, Metric) and later.leaf is leaf:
            yield f"{later.text} equals {assertion.first.text}"
    for each in plan.required_shapes:
        if each.leaf is leaf:
            yield f"{each.name} of axis {each.axis} is {each.value}"


def _remarks(plan: CallPlan) -> Iterator[str]:
    unused = [f"'{part.path}'" for node in plan.parameters for part in walk(node) if isinstance(part, Unused)]
    if unused:
        yield f"The SDFG does not use {', '.join(unused)}."
    if plan.init:
        memory = [f"'{slot.name}'" for slot in plan.memory_symbols]
        again = f", and again when {' or '.join(memory)} changes" if memory else ""
        yield f"The first call initialises the SDFG with {_symbols(len(plan.init))}{again}."
    else:
        yield "The SDFG is initialised when the program is loaded."
    for workspace in plan.workspaces:
        yield f"The caller lends memory in '{workspace.storage}' on {workspace.device}."
    for unknown in accesses_not_known(plan):
        yield f"Not known which elements are accessed: {unknown}."


def _symbols(count: int) -> str:
    return "1 symbol" if count == 1 else f"{count} symbols"
