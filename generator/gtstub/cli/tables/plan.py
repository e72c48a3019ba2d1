"""Tables of call plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gtstub.plan.indices import accesses_not_known, indices_used
from gtstub.plan.model import AxisValue, CallPlan, Data, FieldLeaf, Function, Leaf, Slot, Unused, Value, walk
from gtstub.util.console import make_table, print_parts

MOST_NAMES = 6
"""The most names that a sentence lists; it counts more. The JSON document lists all names."""


def print_plan(plan: CallPlan) -> None:
    """Prints arguments and their contracts, slots and their sources, the values that must agree, and the handle."""
    arguments = make_table("argument", "leaf", "contract", "indices used", "slots")
    for leaf in plan.leaves:
        indices = " ".join(str(slot.index) for slot in plan.slots_of(leaf))
        used = "; ".join(indices_used(plan, leaf))
        arguments.add_row(leaf.path, leaf.name, _describe_contract(leaf), used, indices)
    slots = make_table("slot", "C type", "name", "source", rows=map(_slot_row, plan.slots))
    print_parts(_title(plan), arguments, slots, "\n".join((*_agreements(plan), *_remarks(plan))))


def print_slots(plan: CallPlan, evaluated: Sequence[str] = ()) -> None:
    """
    Prints a row for each slot: its C type, its name, its source, and the contract of the source. `evaluated` are the
    expressions that each call from Python evaluates.
    """
    rows = (
        (*_slot_row(slot), "; ".join(_describe_slot_contract(slot, plan)), _indices_used(slot, plan))
        for slot in plan.slots
    )
    slots = make_table("slot", "C type", "name", "source", "contract", "indices used", rows=rows)
    remarks = list(_remarks(plan))
    if evaluated:
        remarks.append("Each call from Python evaluates again what DaCe has compiled in:")
        remarks += [f"  {each}" for each in evaluated]
    print_parts(_title(plan), slots, "\n".join(remarks))


def _slot_row(slot: Slot) -> tuple[str, ...]:
    return str(slot.index), slot.c_type, slot.name, slot.source.text


def _title(plan: CallPlan) -> str:
    filled = f"{len(plan.slots)} slots, filled from {len(plan.arguments)} leaves"
    return f"Program '{plan.name}', SDFG '{plan.sdfg_name}': {filled}."


def _describe_contract(leaf: Leaf) -> str:
    return leaf.text + (f", on {leaf.device}" if isinstance(leaf, FieldLeaf) else "")


def _describe_slot_contract(slot: Slot, plan: CallPlan) -> Iterator[str]:
    match slot.source:
        case Data(leaf) | Value(leaf):
            yield _describe_contract(leaf)
        case Function(leaf):
            yield leaf.text
        case AxisValue():
            yield f"fits {slot.dtype}"
        case _:
            return
    for assertion in plan.assertions:
        if assertion.symbol == slot.name:
            yield f"equals {assertion.later.text}"
    for each in plan.required_shapes:
        if isinstance(slot.source, Data) and slot.source.leaf is each.leaf:
            yield f"{each.name} of axis {each.axis} is {each.value}"


def _indices_used(slot: Slot, plan: CallPlan) -> str:
    return "; ".join(indices_used(plan, slot.source.leaf)) if isinstance(slot.source, Data) else ""


def _agreements(plan: CallPlan) -> Iterator[str]:
    if plan.assertions or plan.required_shapes:
        yield "Must agree:"
    for assertion in plan.assertions:
        first, later = assertion.first.text, assertion.later.text
        yield f"  {assertion.symbol}: {later} with {first}"
    for each in plan.required_shapes:
        yield f"  {each.name} of axis {each.axis} of '{each.leaf.path}' with {each.value}"


def _remarks(plan: CallPlan) -> Iterator[str]:
    if plan.statics:
        yield f"Compiled in: {', '.join(f'{leaf.path} = {leaf.value!r}' for leaf in plan.statics)}."
    unused = [f"'{part.path}'" for node in plan.parameters for part in walk(node) if isinstance(part, Unused)]
    if unused:
        yield f"Not used by the SDFG: {', '.join(unused)}."
    if plan.init:
        symbols = [f"'{slot.name}'" for slot in plan.init]
        what = ", ".join(symbols) if len(symbols) <= MOST_NAMES else f"{len(symbols)} symbols"
        handle = f"Handle: initialised at the first call with {what}"
        memory = [f"'{slot.name}'" for slot in plan.memory_symbols]
        if memory:
            handle += f", again when {'one of ' if memory[1:] else ''}{', '.join(memory)} changes"
        yield f"{handle}."
    else:
        yield "Handle: initialised when the program is loaded."
    if unknown := accesses_not_known(plan):
        yield "Not known which elements are accessed:"
        yield from (f"  {each}" for each in unknown)
    for workspace in plan.workspaces:
        yield f"Workspace: the caller lends memory in '{workspace.storage}' on {workspace.device}."
