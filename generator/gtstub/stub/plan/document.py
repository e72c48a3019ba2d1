"""The JSON document of a call plan (docs/formats.md). Equal plans have equal documents."""

from __future__ import annotations

from typing import Any

from gtstub.stub.plan.model import (
    AxisContract,
    AxisValue,
    CallbackLeaf,
    CallBounds,
    CallPlan,
    Collection,
    FieldLeaf,
    Leaf,
    Members,
    Metric,
    Node,
    Slot,
    Solution,
    Source,
    StaticLeaf,
    Tuple,
    Unused,
)
from gtstub.stub.signature.documents import plain

SCHEMA = "gtstub/call-plan/1"


def plan_to_json(plan: CallPlan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "sdfg_name": plan.sdfg_name,
        "device": plan.device,
        "parameters": [_node(node) for node in plan.parameters],
        "leaves": [_leaf(leaf) for leaf in plan.leaves],
        "slots": [_slot(slot) for slot in plan.slots],
        "assertions": [
            {"symbol": assertion.symbol, "first": _source(assertion.first), "later": _source(assertion.later)}
            for assertion in plan.assertions
        ],
        "symbols": [{"name": each.name, "source": _source(each.source)} for each in plan.symbols],
        "required_shapes": [
            {"leaf": each.leaf.name, "axis": each.axis, "property": each.name, "value": each.text}
            for each in plan.required_shapes
        ],
        "init": [slot.name for slot in plan.init],
        "memory_symbols": [slot.name for slot in plan.memory_symbols],
        "bounds": [_bounds(each) for each in plan.bounds],
        "facts": plain(plan.facts),
        "known": plan.known,
        "unknown": plain(plan.unknown),
        "unneeded": list(plan.unneeded),
        "workspaces": plain(plan.workspaces),
    }


def _node(node: Node) -> dict[str, Any]:
    if isinstance(node, Tuple):
        keys = {"keys": list(node.keys)} if isinstance(node, Collection) else {}
        return {"path": node.path, **keys, "elements": [_node(element) for element in node.elements]}
    return {"path": node.path, "leaf": None if isinstance(node, Unused) else node.name}


def _leaf(leaf: Leaf) -> dict[str, Any]:
    if isinstance(leaf, CallbackLeaf):
        return {
            "name": leaf.name,
            "path": leaf.path,
            "kind": leaf.kind,
            "arguments": plain(leaf.arguments),
            "results": plain(leaf.results),
            "is_parallel": leaf.is_parallel,
        }
    head = {"name": leaf.name, "path": leaf.path, "kind": leaf.kind, "dtype": leaf.dtype}
    match leaf:
        case FieldLeaf():
            return {**head, **leaf.array.contract, "axes": [_axis(axis) for axis in leaf.axes]}
        case StaticLeaf():
            return {**head, "value": plain(leaf.value)}
        case _:
            return head


def _axis(axis: AxisContract) -> dict[str, Any]:
    used = {} if axis.used is None else {"used": list(axis.used)}
    return {"dim": axis.dim, "fixed": axis.fixed.given, "taken": list(axis.read), **used}


def _bounds(bounds: CallBounds) -> dict[str, Any]:
    return {
        "when": plain(bounds.when),
        "indices": [
            {
                "axes": [{"leaf": leaf.name, "axis": axis} for leaf, axis in each.of.axes],
                "lowest": plain(each.lowest),
                "highest": plain(each.highest),
            }
            for each in bounds.indices
        ],
        "tables": [
            {"leaf" if name == "array" else name: value for name, value in plain(each.follow).items()}
            for each in bounds.tables
        ],
    } | ({"extents": plain(bounds.extents)} if bounds.extents else {})


def _slot(slot: Slot) -> dict[str, Any]:
    members = {name: getattr(slot, name) for name in ("index", "name", "dtype", "is_array", "c_type")}
    return members | {"source": _source(slot.source)}


def _source(source: Source) -> dict[str, Any]:
    match source:
        case Metric(name):
            members: dict[str, Any] = {"name": name}
        case AxisValue(leaf, axis, property_, minus, divisor):
            members = {"leaf": leaf.name, "axis": axis, "property": property_}
            if (minus, divisor) != (0, 1):
                members |= {"minus": minus, "divisor": divisor}
        case Solution():
            members = {
                "leaf": source.leaf.name,
                "axis": source.axis,
                "property": source.name,
                "numerator": str(source.numerator),
                "divisor": str(source.divisor),
                "axes": {name: _source(value) for name, value in source.axes},
            }
        case Members(slots, copied):
            members = {"members": [_slot(slot) for slot in slots], "copied": [slot.name for slot in copied]}
        case _:
            members = {"leaf": source.leaf.name}
    return {"kind": source.kind, **members, "text": source.text}
