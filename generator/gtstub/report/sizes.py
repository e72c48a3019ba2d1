"""The values of an SDFG's symbols, from the sizes of dimensions and the values of arguments that a user names."""

from __future__ import annotations

from collections.abc import Mapping

from gtstub.plan.model import AxisValue, CallPlan, Value
from gtstub.report.model import ReportError


def symbols(plan: CallPlan, dims: Mapping[str, int], values: Mapping[str, int]) -> dict[str, int]:
    """
    The values of the slots and symbols that follow from the size of each of `dims`, with fields that start at 0, and
    from `values`, by the path of an argument or the name of a slot. Raises ReportError for a name that is none.
    """
    every = (*plan.slots, *plan.symbols)
    found: dict[str, int] = {}
    unknown_dims, unknown_values = set(dims), set(values)
    for slot in every:
        source = slot.source
        if isinstance(source, AxisValue) and (dim := source.leaf.axes[source.axis].dim) in dims:
            unknown_dims.discard(dim)
            value = {"start": 0, "stop": dims[dim], "size": dims[dim]}.get(source.name)
            if value is not None:
                found[slot.name] = (value - source.minus) // source.divisor
    for slot in every:
        names = {slot.name, *([slot.source.leaf.path] if isinstance(slot.source, Value) else [])}
        for name in names & set(values):
            unknown_values.discard(name)
            found[slot.name] = values[name]
    for name in sorted(unknown_dims):
        known = sorted({axis.dim for leaf in plan.fields for axis in leaf.axes})
        if name not in known:
            raise ReportError(f"Program '{plan.name}' has no dimension '{name}', only {_listed(known)}.")
    for name in sorted(unknown_values):
        raise ReportError(f"Program '{plan.name}' has no scalar argument and no slot '{name}'.")
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none at all"
