"""
SDFGs in DaCe's JSON form, made without DaCe: what the analysis reads of them.

SDFGs and regions consist of blocks, which run one after the other if no edges are given. States consist of nodes, and
of parts, which are nodes with edges between them. Nodes and blocks get their numbers from their order. Indices and
ranges are texts, such as 'i + 1' or '0:9'; a range includes its end, as in DaCe's JSON form.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

EDGE = "i_Edge_gtx_horizontal"
K = "i_K_gtx_vertical"

ALL = "0:9"
"""The indices of an array, and the range of a map, of which nothing else is said."""


def array(total_size: str = "10", *, kind: str = "Array", **attributes: Any) -> Json:
    sizes = {"shape": ["1"]} if kind == "Scalar" else {"shape": [total_size], "total_size": total_size}
    return {"type": kind, "attributes": {"dtype": "float64", **sizes, **attributes}}


def transient(total_size: str = "10", *, kind: str = "Array", **attributes: Any) -> Json:
    return array(total_size, kind=kind, transient=True, **attributes)


# --- SDFGs and their regions ------------------------------------------------------------------------------------------


def sdfg(
    *blocks: Json,
    arrays: Mapping[str, Json] | None = None,
    edges: Sequence[Json] | None = None,
    symbols: Sequence[str] = (),
    **attributes: Any,
) -> Json:
    """An SDFG. What its states access and `arrays` does not have is global memory."""
    known = dict(arrays or {})
    known |= {name: array() for name in _accessed(blocks) if name not in known}
    attributes = {"name": "prog", "_arrays": known, "symbols": dict.fromkeys(symbols, "int32"), **attributes}
    return {"type": "SDFG", "label": "", "dace_version": "2.0.0a10", "attributes": attributes, **_body(blocks, edges)}


def region(*blocks: Json) -> Json:
    return {"type": "ControlFlowRegion", "label": "region", "attributes": {}, **_body(blocks)}


def branches(cases: Mapping[str, Json], label: str = "choice") -> Json:
    """The first block whose condition holds runs; that of 'else' always holds. Several blocks are a region."""
    regions = [each if each["type"] == "ControlFlowRegion" else region(each) for each in cases.values()]
    conditions = [None if each == "else" else _code(each) for each in cases]
    made = map(list, zip(conditions, regions, strict=True))
    return {"type": "ConditionalBlock", "label": label, "attributes": {}, "branches": [*made]}


def loop(*blocks: Json, condition: str = "k < 3", label: str = "loop", edges: Sequence[Json] | None = None) -> Json:
    """A loop over k."""
    texts = {"init_statement": "k = 0", "loop_condition": condition, "update_statement": "k = (k + 1)"}
    attributes = {"loop_variable": "k", **{name: _code(text) for name, text in texts.items()}}
    return {"type": "LoopRegion", "label": label, "attributes": attributes, **_body(blocks, edges)}


def edge(src: int, dst: int, condition: str = "", **assignments: str) -> Json:
    """An edge between two blocks. As in DaCe, it lacks what has its default value."""
    given = {"assignments": assignments, "condition": condition and _code(condition)}
    data = {"type": "InterstateEdge", "attributes": {name: value for name, value in given.items() if value}}
    return {"type": "Edge", "src": str(src), "dst": str(dst), "attributes": {"data": data}}


def _body(blocks: Sequence[Json], edges: Sequence[Json] | None = None) -> Json:
    if edges is None:
        edges = [edge(number, number + 1) for number in range(len(blocks) - 1)]
    return {"nodes": _numbered(blocks), "edges": list(edges), "start_block": 0}


def _accessed(blocks: Sequence[Json]) -> Iterator[str]:
    """The data of access nodes, nested SDFGs left out."""
    for block in blocks:
        if block["type"] == "AccessNode":
            yield block["attributes"]["data"]
        yield from _accessed([branch for _, branch in block.get("branches", ())] + block.get("nodes", []))


def _numbered(members: Sequence[Json]) -> list[Json]:
    return [{**member, "id": number} for number, member in enumerate(members)]


def _code(text: str) -> Json:
    return {"string_data": text, "language": "Python"}


# --- States -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Edge:
    """An edge between two nodes of a state. `connector` is what a nested SDFG calls the data, or else its name."""

    src: int
    dst: int
    memlet: Json
    connector: str = ""


@dataclasses.dataclass(frozen=True)
class Part:
    """Nodes with edges between them. Edges and scopes have the numbers of nodes in the part."""

    nodes: Sequence[Json]
    edges: Sequence[Edge]


def state(*items: Json | str | Part, edges: Sequence[Edge] = (), label: str = "state") -> Json:
    """
    A state of nodes and parts; a text is an access node. What a part reads and an earlier one has accessed has one
    access node. `edges` are those between single nodes, by their numbers in the state.
    """
    nodes: list[Json] = []
    joined = [*edges]
    last: dict[str, int] = {}
    for item in items:
        if not isinstance(item, Part):
            nodes.append(access(item) if isinstance(item, str) else item)
            continue
        written = {each.dst for each in item.edges}
        ids: list[int] = []
        for number, node in enumerate(item.nodes):
            name = node["attributes"].get("data") or f"node {len(nodes)}"
            if name not in last or number in written:
                last[name] = len(nodes)
                scope = node["scope_entry"]
                nodes.append({**node, "scope_entry": scope and str(ids[int(scope)])})
            ids.append(last[name])
        joined += [dataclasses.replace(each, src=ids[each.src], dst=ids[each.dst]) for each in item.edges]
    made = [_edge(each, nodes) for each in joined]
    return {"type": "SDFGState", "label": label, "attributes": {}, "nodes": _numbered(nodes), "edges": made}


def access(data: str, scope: int | None = None) -> Json:
    return _node("AccessNode", data, scope, data=data)


def tasklet(scope: int | None = None) -> Json:
    return _node("Tasklet", "compute", scope, label="compute", code=_code("pass"))


def map_entry(*variables: str, label: str = "m", scope: int | None = None, **attributes: Any) -> Json:
    """The variables are 'i' or 'i=0:9'."""
    params, ranges = _params_and_ranges(variables)
    text = f"{label}[{', '.join(variables)}]"
    return _node("MapEntry", text, scope, label=label, params=params, range=_range(ranges), **attributes)


def map_exit(entry: int) -> Json:
    return _node("MapExit", "m", entry)


def nested(inner: Json, label: str = "inner", scope: int | None = None, **mapping: str) -> Json:
    """A nested SDFG whose symbols stand for others outside."""
    return _node("NestedSDFG", label, scope, label=label, sdfg=inner, symbol_mapping=mapping)


def _node(type_: str, label: str, scope: int | None, /, **attributes: Any) -> Json:
    entry = None if scope is None else str(scope)
    return {"type": type_, "label": label, "attributes": attributes, "scope_entry": entry}


# --- Edges of a state -------------------------------------------------------------------------------------------------


def order(src: int, dst: int) -> Edge:
    """An edge without data."""
    return Edge(src, dst, {"src_subset": None, "dst_subset": None, "is_data_src": False})


def reading(src: int, dst: int, data: str, *indices: str, connector: str = "") -> Edge:
    """From an access node, or from a map entry that passes on what it holds."""
    subset = _range(indices)
    memlet = {"data": data, "subset": subset, "src_subset": subset, "dst_subset": None, "is_data_src": True}
    return Edge(src, dst, memlet, connector or data)


def writing(src: int, dst: int, data: str, *indices: str, connector: str = "") -> Edge:
    """To an access node, or to a map exit."""
    subset = _range(indices)
    memlet = {"data": data, "subset": subset, "src_subset": None, "dst_subset": subset, "is_data_src": False}
    return Edge(src, dst, memlet, connector or data)


def _edge(edge: Edge, nodes: Sequence[Json]) -> Json:
    def connector(node: int, direction: str) -> str | None:
        if not edge.connector or nodes[node]["type"] == "AccessNode":
            return None
        return edge.connector if nodes[node]["type"] == "NestedSDFG" else f"{direction}_{edge.connector}"

    data = {"type": "Memlet", "attributes": edge.memlet}
    ends = {"src": str(edge.src), "dst": str(edge.dst)}
    connectors = {"src_connector": connector(edge.src, "OUT"), "dst_connector": connector(edge.dst, "IN")}
    return {"type": "MultiConnectorEdge", "attributes": {"data": data}, **ends, **connectors}


def _params_and_ranges(variables: Sequence[str]) -> tuple[list[str], list[str]]:
    parts = [each.partition("=") for each in variables]
    return [name for name, _, _ in parts], [range_ or ALL for _, _, range_ in parts]


def _range(indices: Sequence[str]) -> Json:
    """The range of these indices, 'i', 'start:end' or 'start:end:step', with DaCe's '$' before symbols."""
    parts = [re.sub(r"[A-Za-z_]\w*", r"$\g<0>", index).split(":") for index in indices]
    ends = [(*(each * 2)[:2], *each[2:], "1")[:3] for each in parts]
    ranges = [{"start": first, "end": last, "step": step, "tile": "1"} for first, last, step in ends]
    return {"type": "Range", "ranges": ranges}


# --- Parts of a state -------------------------------------------------------------------------------------------------


def mapped(
    reads: str, writes: str, *variables: str, label: str = "m", read: str = "", write: str = "", tasklets: int = 1
) -> Part:
    """
    A map over K or other variables, with the arrays that it reads and writes; spaces stand between their names. The
    indices in it are its variables, or `read` and `write`. Of several tasklets, the first reads and the last writes.
    The nodes are what it reads, its entry, its tasklets, its exit, what it writes.
    """
    variables = variables or (K,)
    params, ranges = _params_and_ranges(variables)
    sources, targets = reads.split(), writes.split()
    entry = len(sources)
    first, last, leave = entry + 1, entry + tasklets, entry + tasklets + 1
    edges = [order(number, number + 1) for number in range(first, last)]
    for number, name in enumerate(sources):
        edges += [reading(number, entry, name, *ranges), reading(entry, first, name, *([read] if read else params))]
    for number, name in enumerate(targets, leave + 1):
        edges += [writing(last, leave, name, *([write] if write else params)), writing(leave, number, name, *ranges)]
    edges += [order(entry, first)] * (not sources) + [order(last, leave)] * (not targets)
    inside = [*[tasklet(entry)] * tasklets, map_exit(entry)]
    return Part([*map(access, sources), map_entry(*variables, label=label), *inside, *map(access, targets)], edges)


def copied(source: str, target: str, read: str = ALL, write: str = ALL) -> Part:
    """A copy of a part of an array, without a map."""
    memlet = reading(0, 1, source, read).memlet | {"other_subset": _range([write]), "dst_subset": _range([write])}
    return Part([access(source), access(target)], [Edge(0, 1, memlet)])


def computed(node: Json, reads: Mapping[str, str], writes: Mapping[str, str]) -> Part:
    """A node outside of maps, with the arrays that it reads and writes: {connector: array}."""
    middle = len(reads)
    edges = [reading(number, middle, data, ALL, connector=name) for number, (name, data) in enumerate(reads.items())]
    places = enumerate(writes.items(), middle + 1)
    edges += [writing(middle, number, data, ALL, connector=name) for number, (name, data) in places]
    return Part([*map(access, reads.values()), node, *map(access, writes.values())], edges)
