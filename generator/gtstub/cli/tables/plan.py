"""Tables of call plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gtstub.plan.model import AxisValue, CallPlan, Data, FieldLeaf, Function, Leaf, Slot, Value
from gtstub.plan.wording import agreements, indices_used, remarks
from gtstub.util.console import make_table, print_parts


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
    lines = list(_remarks(plan))
    if evaluated:
        lines.append("Each call from Python evaluates again what DaCe has compiled in:")
        lines += [f"  {each}" for each in evaluated]
    print_parts(_title(plan), slots, "\n".join(lines))


def _slot_row(slot: Slot) -> tuple[str, ...]:
    return str(slot.index), slot.c_type, slot.name, slot.source.text


def _title(plan: CallPlan) -> str:
    filled = f"{len(plan.slots)} slots, filled from {len(plan.arguments)} leaves"
    return f"Program '{plan.name}', SDFG '{plan.sdfg_name}': {filled}."


def _describe_contract(leaf: Leaf) -> str:
    return leaf.text + (f", on {leaf.array.device}" if isinstance(leaf, FieldLeaf) else "")


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
    found = [f"  {each.symbol}: {each.text}" if each.symbol else f"  {each.text}" for each in agreements(plan)]
    if found:
        yield from ("Must agree:", *found)


def _remarks(plan: CallPlan) -> Iterator[str]:
    if plan.statics:
        yield f"Compiled in: {', '.join(f'{leaf.path} = {leaf.value!r}' for leaf in plan.statics)}."
    yield from remarks(plan)
