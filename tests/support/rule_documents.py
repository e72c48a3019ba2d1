"""SDFGs in DaCe's JSON form, made without DaCe: only what the analysis reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def array(*, transient: bool = False, kind: str = "Array", **attributes: Any) -> Json:
    return {"type": kind, "attributes": {"dtype": "float64", "shape": ["10"], "transient": transient, **attributes}}


def scalar(*, transient: bool = True) -> Json:
    return array(transient=transient, kind="Scalar")


def sdfg(blocks: Sequence[Json], arrays: Mapping[str, Json], edges: Sequence[Json] = (), name: str = "program") -> Json:
    numbered = [{**block, "id": number} for number, block in enumerate(blocks)]
    attributes = {"name": name, "_arrays": dict(arrays)}
    return {"type": "SDFG", "attributes": attributes, "label": "", "nodes": numbered, "edges": list(edges)}


def interstate(src: int, dst: int, assignments: Mapping[str, str] | None = None, condition: str = "1") -> Json:
    code = {"string_data": condition, "language": "Python"}
    data = {"type": "InterstateEdge", "attributes": {"assignments": dict(assignments or {}), "condition": code}}
    return {"type": "Edge", "attributes": {"data": data}, "src": str(src), "dst": str(dst)}


def state(label: str, nodes: Sequence[Json] = (), edges: Sequence[Json] = ()) -> Json:
    numbered = [{**node, "id": number} for number, node in enumerate(nodes)]
    return {"type": "SDFGState", "label": label, "nodes": numbered, "edges": list(edges), "attributes": {}}


def branches(label: str, *blocks: Json, condition: str = "flag") -> Json:
    """One region with one block for each branch; the last one has no condition."""
    code = {"string_data": condition, "language": "Python"}
    regions = [
        {"type": "ControlFlowRegion", "label": block["label"], "nodes": [{**block, "id": 0}], "edges": []}
        for block in blocks
    ]
    with_conditions = [[code if region is not regions[-1] else None, region] for region in regions]
    return {"type": "ConditionalBlock", "label": label, "branches": with_conditions}


def loop(label: str, blocks: Sequence[Json], edges: Sequence[Json] = (), condition: str = "i < 4") -> Json:
    code = {"loop_condition": {"string_data": condition, "language": "Python"}}
    numbered = [{**block, "id": number} for number, block in enumerate(blocks)]
    return {"type": "LoopRegion", "label": label, "attributes": code, "nodes": numbered, "edges": list(edges)}


# --- Nodes and edges of a state ---------------------------------------------------------------------------------------


def access(data: str, scope: int | None = None) -> Json:
    return {"type": "AccessNode", "label": data, "attributes": {"data": data}, "scope_entry": _id(scope)}


def tasklet(scope: int | None = None) -> Json:
    return {"type": "Tasklet", "label": "compute", "attributes": {}, "scope_entry": _id(scope)}


def map_entry(*variables: str, extent: str = "0:9", scope: int | None = None) -> Json:
    attributes = {"label": "m", "params": list(variables), "range": _range([extent] * len(variables))}
    return {"type": "MapEntry", "label": "m", "attributes": attributes, "scope_entry": _id(scope)}


def map_exit(entry: int) -> Json:
    return {"type": "MapExit", "label": "m", "attributes": {}, "scope_entry": str(entry)}


def nested(inner: Json, scope: int | None = None) -> Json:
    attributes = {"label": inner["attributes"]["name"], "sdfg": inner}
    return {"type": "NestedSDFG", "label": attributes["label"], "attributes": attributes, "scope_entry": _id(scope)}


def order(src: int, dst: int) -> Json:
    """An edge without data, which only orders."""
    return _edge(src, dst, {"type": "Memlet", "attributes": {"data": None}}, None, None)


def reading(src: int, dst: int, data: str, *indices: str, via: str = "") -> Json:
    """From an access node, or from a map entry, which the data passes under the name `via`."""
    return _move(src, dst, data, indices, via, is_read=True)


def writing(src: int, dst: int, data: str, *indices: str, via: str = "") -> Json:
    return _move(src, dst, data, indices, via, is_read=False)


def _move(src: int, dst: int, data: str, indices: Sequence[str], via: str, *, is_read: bool) -> Json:
    subset = _range(indices)
    ends = {"src_subset": subset, "dst_subset": None} if is_read else {"src_subset": None, "dst_subset": subset}
    memlet = {"type": "Memlet", "attributes": {"data": data, "subset": subset, "is_data_src": is_read, **ends}}
    return _edge(src, dst, memlet, f"OUT_{via or data}", f"IN_{via or data}")


def copying(src: int, dst: int, data: str, source: Sequence[str], target: Sequence[str]) -> Json:
    """A copy from one access node to another."""
    ends = {"src_subset": _range(source), "dst_subset": _range(target)}
    memlet = {"type": "Memlet", "attributes": {"data": data, "subset": ends["src_subset"], "is_data_src": True, **ends}}
    return _edge(src, dst, memlet, None, None)


def _edge(src: int, dst: int, memlet: Json, src_connector: str | None, dst_connector: str | None) -> Json:
    return {
        "type": "MultiConnectorEdge",
        "attributes": {"data": memlet},
        "src": str(src),
        "dst": str(dst),
        "src_connector": src_connector,
        "dst_connector": dst_connector,
    }


def _range(indices: Sequence[str]) -> Json:
    ends = [(index.split(":") * 2)[:2] for index in indices]
    return {
        "type": "Range",
        "ranges": [{"start": first, "end": last, "step": "1", "tile": "1"} for first, last in ends],
    }


def _id(scope: int | None) -> str | None:
    return None if scope is None else str(scope)


# --- Whole states -----------------------------------------------------------------------------------------------------


def mapped(source: str, target: str, read: str, write: str, *, variable: str = "i_K_gtx_vertical", at: int = 0) -> Json:
    """
    A part of a state whose first node has the number `at`: a map that reads `source` and writes `target`, as
    {"nodes": ..., "edges": ...}. Its nodes are the source, the entry, a tasklet, the exit, the target.
    """
    nodes = [access(source), map_entry(variable), tasklet(at + 1), map_exit(at + 1), access(target)]
    edges = [
        reading(at, at + 1, source, "0:9"),
        reading(at + 1, at + 2, source, read),
        writing(at + 2, at + 3, target, write),
        writing(at + 3, at + 4, target, "0:9"),
    ]
    return {"nodes": nodes, "edges": edges}


def moving(label: str, source: str, target: str) -> Json:
    """A state with one map, from an array to another."""
    return state(label, **mapped(source, target, "i_K_gtx_vertical", "i_K_gtx_vertical"))
