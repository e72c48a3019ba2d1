"""SDFGs in DaCe's JSON form, written as kernels and what they read and write."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

Block = dict[str, Any]

NOTHING: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Map:
    """A map over `ranges`, with last values as DaCe writes them; `subset` is the range that it writes."""

    label: str
    ranges: Mapping[str, tuple[str, str]]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    subset: tuple[str, str] = ("0", "9")
    tasklets: int = 1


@dataclasses.dataclass(frozen=True)
class Copy:
    """A copy of one array to another; with `through`, a tasklet between them."""

    source: str
    target: str
    through: str = ""


@dataclasses.dataclass(frozen=True)
class Nested:
    """A nested SDFG; its arrays `reads` and `writes` are called the same outside, with `outside` before them."""

    label: str
    sdfg: Block
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    outside: str = ""


EDGE = {"i_Edge_gtx_horizontal": ("0", "9")}
EDGE_AND_K = {"i_Edge_gtx_horizontal": ("$first", "$last - 1"), "i_K_gtx_vertical": ("0", "-1 + $nlev")}


def document(*blocks: Block, transients: Mapping[str, str] = NOTHING) -> Block:
    """An SDFG whose blocks follow each other. `transients` are some of its arrays, with their numbers of elements."""
    made = _chain(blocks)
    arrays = {name: _array(transients.get(name)) for name in _accessed(made)}
    attributes = {"name": "prog", "_arrays": arrays, "symbols": {}}
    return {"type": "SDFG", "label": "prog", "dace_version": "2.0.0a10", "attributes": attributes, **made}


def _array(elements: str | None) -> Block:
    size = elements or "10"
    attributes = {"dtype": "float64", "shape": [size], "total_size": size, "transient": elements is not None}
    return {"type": "Array", "attributes": {"storage": "CPU_Heap", "lifetime": "Scope", **attributes}}


def _accessed(region: Block) -> set[str]:
    """The arrays that a region accesses outside nested SDFGs."""
    if region.get("type") == "AccessNode":
        return {region["attributes"]["data"]}
    inner = [branch for _, branch in region.get("branches", ())] + region.get("nodes", [])
    return set().union(*map(_accessed, inner))


def branches(*cases: tuple[str | None, Block]) -> Block:
    """A block that takes the first case whose condition holds; None is the condition of an 'else'."""
    made = [
        [
            None if condition is None else {"string_data": condition},
            {"type": "ControlFlowRegion", "label": "branch", "attributes": {}, **_chain([block])},
        ]
        for condition, block in cases
    ]
    return {"type": "ConditionalBlock", "label": "if", "attributes": {}, "branches": made}


def loop(condition: str, *blocks: Block) -> Block:
    attributes = {"loop_condition": {"string_data": condition}}
    return {"type": "LoopRegion", "label": "loop", "attributes": attributes, **_chain(blocks)}


def state(label: str, *items: Map | Copy | Nested) -> Block:
    """A state. What an item writes, later items read from the same access node."""
    nodes: list[Block] = []
    edges: list[Block] = []
    last: dict[str, int] = {}

    def add(type_: str, scope: int | None = None, **attributes: Any) -> int:
        nodes.append({"type": type_, "id": len(nodes), "scope_entry": None if scope is None else str(scope)})
        nodes[-1] |= {"label": attributes.get("label", ""), "attributes": attributes}
        return len(nodes) - 1

    def access(name: str) -> int:
        if name not in last:
            last[name] = add("AccessNode", data=name)
        return last[name]

    def write(name: str) -> int:
        last[name] = add("AccessNode", data=name)
        return last[name]

    def edge(source: int, target: int, data: str, bounds: tuple[str, str] = ("0", "9"), connector: str = "") -> None:
        subset = {"type": "Range", "ranges": [{"start": bounds[0], "end": bounds[1], "step": "1", "tile": "1"}]}
        memlet = {"data": data or None, "subset": subset, "src_subset": None, "dst_subset": None, "is_data_src": True}
        ends = {"src": str(source), "dst": str(target), "src_connector": connector, "dst_connector": connector}
        edges.append({**ends, "attributes": {"data": {"type": "Memlet", "attributes": memlet}}})

    for item in items:
        match item:
            case Map():
                ranges = [{"start": start, "end": end, "step": "1", "tile": "1"} for start, end in item.ranges.values()]
                sources = [access(name) for name in item.reads]
                range_ = {"type": "Range", "ranges": ranges}
                entry = add("MapEntry", label=item.label, params=[*item.ranges], range=range_)
                for source, name in zip(sources, item.reads, strict=True):
                    edge(source, entry, name)
                for _ in range(item.tasklets):
                    edge(entry, add("Tasklet", entry), "")
                leave = add("MapExit", entry)
                for name in item.writes:
                    edge(leave, write(name), name, item.subset)
            case Copy(source_name, target_name, through):
                begin = access(source_name)
                if through:
                    tasklet = add("Tasklet", label=through)
                    edge(begin, tasklet, source_name)
                    edge(tasklet, write(target_name), target_name)
                else:
                    edge(begin, write(target_name), source_name)
            case Nested():
                sources = [access(item.outside + name) for name in item.reads]
                inner = add("NestedSDFG", label=item.label, sdfg=item.sdfg)
                for source, name in zip(sources, item.reads, strict=True):
                    edge(source, inner, item.outside + name, connector=name)
                for name in item.writes:
                    edge(inner, write(item.outside + name), item.outside + name, connector=name)
    return {"type": "SDFGState", "label": label, "attributes": {}, "nodes": nodes, "edges": edges}


def _chain(blocks: Iterable[Block]) -> Block:
    """The blocks with numbers and edges from each to the next; listed backwards, because DaCe keeps no order."""
    numbered = [{**block, "id": number} for number, block in enumerate(blocks)]
    data = {"type": "InterstateEdge", "attributes": {"assignments": {}, "condition": {"string_data": "1"}}}
    pairs = range(len(numbered) - 1)
    edges = [{"src": str(number), "dst": str(number + 1), "attributes": {"data": data}} for number in pairs]
    return {"nodes": numbered[::-1], "edges": edges}
