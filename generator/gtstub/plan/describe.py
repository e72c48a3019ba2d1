"""What a user would call the parts of a call plan, in generated comments, error texts and tables; their types in C."""

from __future__ import annotations

from collections.abc import Iterable

from gtstub.plan.model import (
    METRICS_LEVEL,
    AxisContract,
    AxisValue,
    CallPlan,
    Data,
    Leaf,
    Metric,
    ScalarLeaf,
    Slot,
    Source,
    StaticLeaf,
    Value,
)
from gtstub.signature.model import DType, Property

C_TYPES: dict[DType, str] = {
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
}


def c_type(slot: Slot) -> str:
    """The type of a slot in the prototype of `__program_<name>`."""
    return f"{C_TYPES[slot.dtype]} *" if slot.is_array else C_TYPES[slot.dtype]


def c_flags(properties: Iterable[Property]) -> str:
    """Properties of axes as the runtime numbers them: `GTS_START | GTS_STRIDE`."""
    return " | ".join(f"GTS_{name.upper()}" for name in properties) or "0"


def describe_source(source: Source, plan: CallPlan) -> str:
    """Where a slot's value comes from: `stride of axis 1 of 'vn'`."""
    paths = {leaf.name: leaf.path for leaf in plan.leaves}
    match source:
        case Data(leaf):
            return f"data of '{paths[leaf]}'"
        case AxisValue(leaf, axis, property_):
            return f"{property_} of axis {axis} of '{paths[leaf]}'"
        case Value(leaf):
            return f"'{paths[leaf]}'"
        case Metric(name):
            return "metrics level" if name == METRICS_LEVEL else "compute time"


def describe_statics(plan: CallPlan) -> list[str]:
    """The values that were compiled in, in program order: `n = 7`, `weights[0] = 0.5`."""
    return [f"{leaf.path} = {leaf.value!r}" for leaf in plan.leaves if isinstance(leaf, StaticLeaf)]


def describe_leaf(leaf: Leaf) -> str:
    """What a leaf is: `float64 field on [Edge (stride 1), K], written`."""
    if isinstance(leaf, ScalarLeaf):
        return f"zero-dimensional field of {leaf.dtype}" if leaf.is_field else leaf.dtype
    if isinstance(leaf, StaticLeaf):
        return f"{leaf.dtype}, compiled in as {leaf.value!r}"
    kind = f"{leaf.dtype} field on [{', '.join(_describe_axis(axis) for axis in leaf.axes)}]"
    if leaf.is_connectivity:
        kind = f"connectivity, {kind}"
    return f"{kind}, written" if leaf.written else kind


def _describe_axis(axis: AxisContract) -> str:
    """A dimension and what is fixed of it: `K`, `Edge (stride 1)`."""
    fixed = ", ".join(f"{name} {value}" for name, value in axis.fixed.given.items())
    return f"{axis.dim} ({fixed})" if fixed else axis.dim
