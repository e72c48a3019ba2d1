"""Texts that describe parts of a call plan in comments of generated files, messages and tables."""

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
    """The source of a slot: `stride of axis 1 of 'vn'`."""
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
    """The compiled-in values in program order: `n = 7`, `weights[0] = 0.5`."""
    return [f"{leaf.path} = {leaf.value!r}" for leaf in plan.statics]


def describe_leaf(leaf: Leaf) -> str:
    """A leaf: `float64 field on [Edge (stride 1), K], written`."""
    match leaf:
        case FieldLeaf():
            kind = f"{leaf.dtype} field on [{', '.join(map(_describe_axis, leaf.axes))}]"
            return f"{'connectivity, ' if leaf.is_connectivity else ''}{kind}{', written' if leaf.written else ''}"
        case ScalarLeaf():
            return f"zero-dimensional field of {leaf.dtype}" if leaf.is_field else leaf.dtype
        case _:
            return f"{leaf.dtype}, compiled in as {leaf.value!r}"


def _describe_axis(axis: AxisContract) -> str:
    """A dimension with its fixed values: `K`, `Edge (stride 1)`."""
    fixed = ", ".join(f"{name} {value}" for name, value in axis.fixed.given.items())
    return f"{axis.dim} ({fixed})" if fixed else axis.dim
