"""Small SDFGs in DaCe's JSON form, without DaCe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def sdfg(
    *blocks: Json, arrays: Mapping[str, Json], edges: Sequence[Json] = (), symbols: Sequence[str] = (), **more: Any
) -> Json:
    return {
        "type": "SDFG",
        "attributes": {"name": "prog", "_arrays": dict(arrays), "symbols": dict.fromkeys(symbols, "int32"), **more},
        "nodes": numbered(blocks),
        "edges": list(edges),
    }


def transient(total_size: str, *, kind: str = "Array", dtype: Any = "float64", **attributes: Any) -> Json:
    return {
        "type": kind,
        "attributes": {
            "transient": True,
            "dtype": dtype,
            "shape": [total_size],
            "total_size": total_size,
            **attributes,
        },
    }


def numbered(blocks: Sequence[Json]) -> list[Json]:
    return [{**block, "id": number} for number, block in enumerate(blocks)]


def state(*nodes: Json | str) -> Json:
    """A state of nodes; a text is the data of an access node, 'A in 0' of one in the map that is node 0."""
    return {"type": "SDFGState", "label": "state", "attributes": {}, "nodes": numbered([_node(each) for each in nodes])}


def _node(node: Json | str) -> Json:
    if not isinstance(node, str):
        return node
    data, _, entry = node.partition(" in ")
    return {"type": "AccessNode", "attributes": {"data": data}, "scope_entry": entry or None}


def map_entry(*params: str, label: str = "map", inside: str | None = None, **attributes: Any) -> Json:
    return {
        "type": "MapEntry",
        "scope_entry": inside,
        "attributes": {"label": label, "params": list(params), **attributes},
    }


def nested(inner: Json, label: str = "inner", inside: str | None = None, **mapping: str) -> Json:
    return {
        "type": "NestedSDFG",
        "label": label,
        "scope_entry": inside,
        "attributes": {"sdfg": inner, "symbol_mapping": mapping},
    }


def conditional(label: str = "choice", **branches: Sequence[Json]) -> Json:
    """The names are conditions, 'otherwise' is the last branch."""
    return {
        "type": "ConditionalBlock",
        "label": label,
        "attributes": {},
        "branches": [
            [None if name == "otherwise" else {"string_data": f"({name})"}, region(*blocks)]
            for name, blocks in branches.items()
        ],
    }


def region(*blocks: Json) -> Json:
    return {"type": "ControlFlowRegion", "attributes": {}, "nodes": numbered(blocks), "edges": []}


def loop(variable: str, *blocks: Json) -> Json:
    code = {"init_statement": f"{variable} = 0", "loop_condition": f"{variable} < 3", "update_statement": ""}
    return {
        **region(*blocks),
        "type": "LoopRegion",
        "label": "loop",
        "attributes": {"loop_variable": variable, **{name: {"string_data": text} for name, text in code.items()}},
    }


def edge(src: int = 0, dst: int = 1, when: str = "", **assignments: str) -> Json:
    """An edge between two blocks, by their numbers."""
    attributes = {"assignments": assignments, **({"condition": {"string_data": when}} if when else {})}
    data = {"type": "InterstateEdge", "attributes": attributes}
    return {"type": "Edge", "src": str(src), "dst": str(dst), "attributes": {"data": data}}
