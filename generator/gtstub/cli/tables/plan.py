"""Tables of call plans."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gtstub.stub.plan.model import (
    AxisValue,
    CallPlan,
    Data,
    FieldLeaf,
    Function,
    Leaf,
    Members,
    ScalarLeaf,
    Slot,
    Value,
)
from gtstub.stub.plan.wording import agreements, remarks, uses
from gtstub.util.console import make_table, print_parts
from gtstub.util.legend import WIDTH, Legend

if TYPE_CHECKING:
    from rich.table import Table


def print_plan(plan: CallPlan) -> None:
    """Prints arguments and their contracts, slots and their sources, the values that must agree, and the handle."""
    arguments = [
        (
            leaf.path,
            leaf.name if leaf.name != leaf.path else "",
            _contract(leaf, plan),
            " ".join(str(slot.index) for slot in plan.slots_of(leaf)),
        )
        for leaf in plan.leaves
    ]
    print_parts(
        _title(plan),
        _filled("argument", "leaf", "contract", "slots", rows=arguments),
        *_slots(plan, with_contracts=False),
        *_bounds(plan),
        "\n".join((*_agreements(plan), *_remarks(plan))),
        width=WIDTH,
    )


def print_slots(plan: CallPlan, evaluated: Sequence[str] = ()) -> None:
    """
    Prints a row for each slot: its C type, its name, its source, and the contract of the source; and a row for each
    axis with the indices that calls use. `evaluated` are the expressions that each call from Python evaluates.
    """
    lines = list(_remarks(plan))
    if any(isinstance(slot.source, AxisValue) for slot in plan.values):
        lines.insert(0, "Starts, sizes and strides of arguments must fit the C types of their slots.")
    if evaluated:
        lines.append("Each call from Python evaluates again what DaCe has compiled in:")
        lines += [f"  {each}" for each in evaluated]
    print_parts(_title(plan), *_slots(plan, with_contracts=True), *_bounds(plan), "\n".join(lines), width=WIDTH)


def _title(plan: CallPlan) -> str:
    filled = f"{len(plan.slots)} slots, filled from {len(plan.arguments)} leaves"
    device = f" Its fields are on {device}." if (device := _device(plan)) else ""
    return f"Program '{plan.name}', SDFG '{plan.sdfg_name}': {filled}.{device}"


def _device(plan: CallPlan) -> str:
    """The device of all fields, if they are on the same one."""
    devices = {leaf.array.device for leaf in plan.fields}
    return devices.pop() if len(devices) == 1 else ""


def _filled(*columns: str, rows: Iterable[Sequence[str]]) -> Table:
    """A table without the columns that are empty, because there is no room for them."""
    all_rows = list(rows)
    shown = [number for number in range(len(columns)) if any(row[number] for row in all_rows)]
    return make_table(*(columns[n] for n in shown), rows=([row[n] for n in shown] for row in all_rows))


# --- Slots ------------------------------------------------------------------------------------------------------------


def _slots(plan: CallPlan, *, with_contracts: bool) -> Iterator[Table]:
    """A table of the slots that are arrays or functions, and one of the others, whose names are longer."""
    for are_values in (False, True):
        slots = [slot for slot in _with_members(plan.slots) if _is_value(slot) == are_values]
        rows = [
            (
                str(slot.index),
                slot.c_type,
                slot.name,
                _source(slot, plan),
                "; ".join(_slot_contract(slot, plan)) if with_contracts else "",
            )
            for slot in slots
        ]
        yield _filled("slot", "C type", "name", "source", "contract", rows=rows)


def _with_members(slots: Iterable[Slot]) -> Iterator[Slot]:
    """The slots, and the members of structures after these."""
    for slot in slots:
        yield slot
        if isinstance(slot.source, Members):
            yield from _with_members(slot.source.slots)


def _is_value(slot: Slot) -> bool:
    return not slot.is_array and not isinstance(slot.source, Function | Members)


def _source(slot: Slot, plan: CallPlan) -> str:
    """The source, without the argument if the name of the slot says it."""
    text = slot.source.text
    match slot.source:
        case Data(leaf) if leaf.path == slot.name:
            return "data"
        case AxisValue(leaf) if _named_in(slot, plan) is leaf:
            return text.replace(f" of '{leaf.path}'", "")
    return text


def _named_in(slot: Slot, plan: CallPlan) -> FieldLeaf | None:
    """The field with which the name of a slot begins, as in '__vn_K_stride'."""
    fields = [leaf for leaf in plan.fields if slot.name.startswith(f"__{leaf.array.name}_")]
    return max(fields, key=lambda leaf: len(leaf.array.name), default=None)


def _contract(leaf: Leaf, plan: CallPlan) -> str:
    return leaf.text + (f", on {leaf.array.device}" if isinstance(leaf, FieldLeaf) and not _device(plan) else "")


def _slot_contract(slot: Slot, plan: CallPlan) -> Iterator[str]:
    """What the C type of a slot does not say."""
    match slot.source:
        case Data(leaf):
            yield _contract(leaf, plan)
        case Function(leaf):
            yield leaf.text
        case Value(ScalarLeaf(is_field=True) as leaf):
            yield leaf.text
    for assertion in plan.assertions:
        if assertion.symbol == slot.name:
            yield f"equals {assertion.later.text}"
    for each in plan.required_shapes:
        if isinstance(slot.source, Data) and slot.source.leaf is each.leaf:
            yield f"{each.name} of axis {each.axis} is {each.text}"


# --- Indices ----------------------------------------------------------------------------------------------------------


def _bounds(plan: CallPlan) -> tuple[Table, str]:
    """A row for each axis with the indices that calls are sure to use, and what the letters of conditions mean."""
    found = [
        (leaf.path, dim, indices, conditions)
        for leaf in plan.leaves
        for (_, dim, indices), conditions in sorted(_used(plan, leaf).items(), key=lambda each: each[0][0])
    ]
    legend = Legend(*(" ".join((path, indices, *itertools.chain(*when))) for path, _, indices, when in found))
    rows = []
    shown = legend.terms([indices for _, _, indices, _ in found])
    for (path, dim, _, conditions), indices in zip(found, shown, strict=True):
        letters = (", ".join(sorted(map(legend.letter, when))) for when in conditions)
        rows.append((path, dim, indices, " or ".join(letters)))
    return _filled("argument", "axis", "indices used", "if", rows=rows), str(legend)


def _used(plan: CallPlan, leaf: Leaf) -> dict[tuple[int, str, str], list[tuple[str, ...]]]:
    """By axis, dimension and indices the conditions under which they are used, but none that another one includes."""
    found: dict[tuple[int, str, str], list[tuple[str, ...]]] = {}
    for use in uses(plan, leaf):
        found.setdefault((use.axis, use.dim, use.indices), []).append(use.when)
    return {
        key: [when for when in conditions if not any(set(other) < set(when) for other in conditions)]
        for key, conditions in found.items()
    }


# --- Sentences --------------------------------------------------------------------------------------------------------


def _agreements(plan: CallPlan) -> Iterator[str]:
    found = [f"  {each.symbol}: {each.text}" if each.symbol else f"  {each.text}" for each in agreements(plan)]
    if found:
        yield from ("Must agree:", *found)


def _remarks(plan: CallPlan) -> Iterator[str]:
    if plan.statics:
        yield f"Compiled in: {', '.join(f'{leaf.path} = {leaf.value!r}' for leaf in plan.statics)}."
    yield from remarks(plan)
