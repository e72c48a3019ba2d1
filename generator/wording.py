"""What a user would call the parts of a call plan: the words of generated comments, error texts and tables."""

from __future__ import annotations

from gtstub.plan import METRICS_LEVEL, AxisValue, CallPlan, Data, Leaf, Metric, ScalarLeaf, Source, Value


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


def describe_leaf(leaf: Leaf) -> str:
    """What a leaf is: `float64 field on [Edge, K], written`."""
    if isinstance(leaf, ScalarLeaf):
        return f"zero-dimensional field of {leaf.dtype}" if leaf.is_field else leaf.dtype
    kind = f"{leaf.dtype} field on [{', '.join(axis.dim for axis in leaf.axes)}]"
    if leaf.is_connectivity:
        kind = f"connectivity, {kind}"
    return f"{kind}, written" if leaf.written else kind
