"""Tables of a granule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gtstub.entries.cache.inspection import signatures
from gtstub.programs.granule.description import ArrayValue, Call, Constant, Description
from gtstub.programs.layout import Layout
from gtstub.stub.plan.model import CallPlan, FieldLeaf
from gtstub.stub.plan.planner import make_plan
from gtstub.util.console import make_table, print_parts


def print_granule(description: Description, folder: Path) -> None:
    """Prints the arrays, the positions of each step, and what is compiled in."""
    read = (signatures(folder / program.folder) for program in description.programs)
    plans = [make_plan(sdfg, program) for _, sdfg, program in read]
    arrays = make_table("array", "memory", "type", "size", "bytes", "", rows=_arrays(description))
    steps = make_table("step", "position", "does", "writes", "constants", rows=_positions(description, plans))
    rows = list(_compiled_in(plans))
    print_parts(
        _summary(description), arrays, steps, *([make_table("program", "compiled in", rows=rows)] if rows else [])
    )


def _summary(description: Description) -> str:
    scalars = ", ".join(f"{each.name} ({each.dtype})" for each in description.scalars) or "none"
    return f"Granule '{description.name}'. Scalars: {scalars}. Hooks: {', '.join(description.hooks) or 'none'}."


def _arrays(description: Description) -> Iterator[tuple[str, ...]]:
    for array in description.arrays:
        sizes = ", ".join(f"{dim} {size}".strip() for dim, size in zip(array.dims, array.shape, strict=True))
        notes = [text for text, holds in (("table", array.is_table), ("written", array.written)) if holds]
        memory = "argument" if array.is_argument else "kept"
        size = Layout(0, array.dtype, array.shape, array.strides).bytes
        yield array.name, memory, array.dtype, sizes, f"{size:,}", ", ".join(notes)


def _positions(description: Description, plans: Sequence[CallPlan]) -> Iterator[tuple[str, ...]]:
    for step in description.steps:
        for number, position in enumerate(step.positions):
            first = step.name if number == 0 else ""
            if isinstance(position, Call):
                program = description.programs[position.program].name
                yield first, str(number + 1), program, *_arguments(description, position, plans[position.program])
            else:
                arrays = " ".join(description.arrays[each].name for each in position.arrays)
                yield first, str(number + 1), f"hook {description.hooks[position.hook]}", arrays, ""


def _arguments(description: Description, call: Call, plan: CallPlan) -> tuple[str, str]:
    """The arrays that a call writes, and its constants."""
    written, constants = [], []
    for argument, leaf in zip(call.arguments, plan.leaves, strict=True):
        match argument.value:
            case ArrayValue(array=array) if isinstance(leaf, FieldLeaf) and leaf.array.written:
                written.append(description.arrays[array].name)
            case Constant(value=value):
                constants.append(f"{argument.name}={value!r}")
    return " ".join(written), " ".join(constants)


def _compiled_in(plans: Sequence[CallPlan]) -> Iterator[tuple[str, ...]]:
    for plan in plans:
        for number, leaf in enumerate(plan.statics):
            yield plan.name if number == 0 else "", f"{leaf.path} = {leaf.value!r}"
