"""The parts of a call plan in words, for comments in generated files, messages and tables."""

from __future__ import annotations

from gtstub.plan.model import (
    METRICS_LEVEL,
    AxisContract,
    AxisValue,
    CallPlan,
    Data,
    FieldLeaf,
    Leaf,
    ScalarLeaf,
    Source,
    Value,
)


def describe_source(source: Source) -> str:
    """Where a slot's value comes from: `stride of axis 1 of 'vn'`."""
    match source:
        case Data(leaf):
            return f"data of '{leaf.path}'"
        case AxisValue(leaf, axis, property_):
            return f"{property_} of axis {axis} of '{leaf.path}'"
        case Value(leaf):
            return f"'{leaf.path}'"
        case _:
            return "metrics level" if source.name == METRICS_LEVEL else "compute time"


def describe_statics(plan: CallPlan) -> list[str]:
    """The values that were compiled in, in program order: `n = 7`, `weights[0] = 0.5`."""
    return [f"{leaf.path} = {leaf.value!r}" for leaf in plan.statics]


def describe_leaf(leaf: Leaf) -> str:
    """What a leaf is: `float64 field on [Edge (stride 1), K], written`."""
    match leaf:
        case FieldLeaf():
            kind = f"{leaf.dtype} field on [{', '.join(map(_describe_axis, leaf.axes))}]"
            kind = f"connectivity, {kind}" if leaf.is_connectivity else kind
            return f"{kind}, written" if leaf.written else kind
        case ScalarLeaf():
            return f"zero-dimensional field of {leaf.dtype}" if leaf.is_field else leaf.dtype
        case _:
            return f"{leaf.dtype}, compiled in as {leaf.value!r}"


def _describe_axis(axis: AxisContract) -> str:
    """A dimension and what is fixed of it: `K`, `Edge (stride 1)`."""
    fixed = ", ".join(f"{name} {value}" for name, value in axis.fixed.given.items())
    return f"{axis.dim} ({fixed})" if fixed else axis.dim
