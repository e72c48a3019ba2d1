"""
The maps of an SDFG that are not inside another one, in the order of a call, and which of them reads what another wrote.

Each becomes a loop nest of the generated C++, or a kernel on a GPU. Branches and loops of the SDFG are followed; two
maps of which only one can run do not depend on each other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gtstub.analysis.document import Document, in_the_form_of_dace

Node = Mapping[str, Any]

_HORIZONTAL_OR_VERTICAL = re.compile(r"i_(\w+?)_gtx_(?:horizontal|vertical|local)")


@dataclasses.dataclass(frozen=True)
class Range:
    """The values of one variable of a map, from `start` to below `stop`, both as DaCe writes them without '$'."""

    name: str
    start: str
    stop: str
    step: str

    @property
    def dim(self) -> str:
        """gt4py's dimension of the variable, or else its name."""
        found = _HORIZONTAL_OR_VERTICAL.fullmatch(self.name)
        return found[1] if found else self.name

    @property
    def text(self) -> str:
        """`Edge 0:27`, `K 0:nlev:2`."""
        return f"{self.dim} {self.start}:{self.stop}" + ("" if self.step == "1" else f":{self.step}")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """
    A map. `where` has the conditions of the branches and loops around it, outermost first, and `state` is the label of
    its state. `reads` and `writes` name arrays of the outermost SDFG, or 'inner.name' in a nested one; sorted.
    `tasklets` counts the computations in it, in nested SDFGs too. `depth` is the number of kernels before it in the
    longest chain of those that it depends on.
    """

    index: int
    label: str
    state: str
    where: tuple[str, ...]
    ranges: tuple[Range, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    tasklets: int
    depth: int


@dataclasses.dataclass(frozen=True)
class Dependence:
    """The kernel `reader` reads arrays that the kernel `writer` has written, directly or through copies."""

    writer: int
    reader: int
    data: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Kernels:
    kernels: tuple[Kernel, ...]
    dependences: tuple[Dependence, ...]


Writers = dict[str, dict[int, str]]
"""
For each array the kernels whose writes may still be in it, each with the subset that it wrote; the subset is empty if
it is not known.
"""


@dataclasses.dataclass(frozen=True)
class _Place:
    """
    Where the walk is: the conditions around it, the label of the state, and what the arrays of a nested SDFG are called
    outside. Other arrays of a nested SDFG get the `prefix`.
    """

    where: tuple[str, ...] = ()
    state: str = ""
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""

    def under(self, condition: str) -> _Place:
        return dataclasses.replace(self, where=(*self.where, condition))

    def array(self, node: Node) -> str | None:
        """The name of an access node's array; None for other nodes."""
        if node["type"] != "AccessNode":
            return None
        name = str(node["attributes"]["data"])
        return self.names.get(name, self.prefix + name)


def kernels(document: Document) -> Kernels:
    """The kernels of an SDFG. Raises SdfgError for a document of another form."""
    walk = _Walk([], {})
    with in_the_form_of_dace(document):
        walk.region(document, _Place(), {})
    return Kernels(
        tuple(walk.kernels),
        tuple(
            Dependence(writer, reader, tuple(sorted(data))) for (reader, writer), data in sorted(walk.reads_of.items())
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Walk:
    """What was found so far: the kernels, and for each pair of a reader and a writer the arrays between them."""

    kernels: list[Kernel]
    reads_of: dict[tuple[int, int], set[str]]

    def region(self, region: Node, place: _Place, writers: Writers) -> None:
        """Adds the kernels of an SDFG or a region of its control flow, and changes `writers` as the region does."""
        blocks = {str(block["id"]): block for block in region["nodes"]}
        for block in _ordered(blocks, [(str(edge["src"]), str(edge["dst"])) for edge in region["edges"]]):
            match block["type"]:
                case "SDFGState":
                    self._state(block, dataclasses.replace(place, state=str(block["label"])), writers)
                case "ConditionalBlock":
                    self._branches(block, place, writers)
                case "LoopRegion":
                    self.region(block, place.under(_loop(block)), writers)
                case _ if "nodes" in block:
                    self.region(block, place, writers)

    def _branches(self, block: Node, place: _Place, writers: Writers) -> None:
        before = {data: dict(those) for data, those in writers.items()}
        earlier: list[str] = []
        for condition, branch in block["branches"]:
            text = f"not ({' or '.join(earlier)})" if condition is None else _code(condition)
            earlier.append(text)
            inner = {data: dict(those) for data, those in before.items()}
            self.region(branch, place.under(text), inner)
            for data, those in inner.items():
                writers.setdefault(data, {}).update(those)

    def _state(self, state: Node, place: _Place, writers: Writers) -> None:
        nodes = {str(node["id"]): node for node in state["nodes"]}
        exits = {id_: str(node["scope_entry"]) for id_, node in nodes.items() if node["type"] == "MapExit"}
        outer = {id_: node for id_, node in nodes.items() if id_ not in exits and node.get("scope_entry") is None}
        pairs = []
        into: dict[str, list[Node]] = {id_: [] for id_ in outer}
        out: dict[str, list[Node]] = {id_: [] for id_ in outer}
        for edge in state["edges"]:
            source, target = (exits.get(str(edge[end]), str(edge[end])) for end in ("src", "dst"))
            if source != target and source in outer and target in outer:
                pairs.append((source, target))
                if _memlet(edge):
                    out[source].append(edge)
                    into[target].append(edge)
        for node in _ordered(outer, pairs):
            id_ = str(node["id"])
            read = [(name, edge) for edge in into[id_] if (name := place.array(nodes[str(edge["src"])]))]
            written = [(name, edge) for edge in out[id_] if (name := place.array(nodes[str(edge["dst"])]))]
            match node["type"]:
                case "MapEntry":
                    inside = [other for other in state["nodes"] if _is_within(other, id_, nodes)]
                    self._kernel(node, inside, place, read, written, writers)
                case "NestedSDFG":
                    names = {str(edge["dst_connector"]): name for name, edge in read}
                    names |= {str(edge["src_connector"]): name for name, edge in written}
                    prefix = f"{place.prefix}{node['label']}."
                    self.region(node["attributes"]["sdfg"], _Place(place.where, "", names, prefix), writers)
                case _:  # A copy or a single computation passes on what it reads.
                    copied = place.array(node)
                    sources = {name for name, _ in read} if copied is None else {copied}
                    through = {kernel: "" for name in sources for kernel in writers.get(name, ())}
                    for name, _ in written:
                        writers.setdefault(name, {}).update(through)

    def _kernel(
        self,
        node: Node,
        inside: Sequence[Node],
        place: _Place,
        read: Sequence[tuple[str, Node]],
        written: Sequence[tuple[str, Node]],
        writers: Writers,
    ) -> None:
        index, attributes = len(self.kernels), node["attributes"]
        depth = 0
        for name, _ in read:
            for writer in writers.get(name, ()):
                self.reads_of.setdefault((index, writer), set()).add(name)
                depth = max(depth, self.kernels[writer].depth + 1)
        for name, edge in written:
            subset = _subset(edge)
            kept = {kernel: other for kernel, other in writers.get(name, {}).items() if other != subset or not subset}
            writers[name] = {**kept, index: subset}
        made = Kernel(
            index=index,
            label=str(attributes["label"]),
            state=place.state,
            where=place.where,
            ranges=tuple(
                Range(str(name), _plain(each["start"]), _after(_plain(each["end"])), _plain(each["step"]))
                for name, each in zip(attributes["params"], attributes["range"]["ranges"], strict=True)
            ),
            reads=tuple(sorted({name for name, _ in read})),
            writes=tuple(sorted({name for name, _ in written})),
            tasklets=sum(map(_tasklets, inside)),
            depth=depth,
        )
        self.kernels.append(made)


def _ordered(nodes: Mapping[str, Node], edges: Sequence[tuple[str, str]]) -> list[Node]:
    """Nodes in the order of their edges; those on a cycle follow in the order of the document."""
    before = dict.fromkeys(nodes, 0)
    after: dict[str, list[str]] = {id_: [] for id_ in nodes}
    for source, target in edges:
        before[target] += 1
        after[source].append(target)
    ready = [id_ for id_, count in before.items() if count == 0]
    for id_ in ready:  # It grows meanwhile.
        for target in after[id_]:
            before[target] -= 1
            if before[target] == 0:
                ready.append(target)
    return [nodes[id_] for id_ in dict.fromkeys((*ready, *nodes))]


def _is_within(node: Node, entry: str, nodes: Mapping[str, Node]) -> bool:
    """Whether a node is in the scope of a map, or in that of a map within it."""
    scope = node.get("scope_entry")
    while scope is not None and str(scope) != entry:
        scope = nodes[str(scope)].get("scope_entry")
    return scope is not None


def _tasklets(node: Node) -> int:
    """The tasklets that a node or a region is or contains."""
    if node["type"] == "NestedSDFG":
        return _tasklets(node["attributes"]["sdfg"])
    if node["type"] == "ConditionalBlock":
        return sum(_tasklets(branch) for _, branch in node["branches"])
    return int(node["type"] == "Tasklet") + sum(map(_tasklets, node.get("nodes", ())))


def _memlet(edge: Node) -> Node | None:
    """The attributes of an edge's memlet; None if it is empty, so that the edge only orders two nodes."""
    memlet = edge["attributes"]["data"]
    attributes: Node | None = None if memlet is None else memlet["attributes"]
    return attributes if attributes is not None and attributes.get("data") is not None else None


def _subset(edge: Node) -> str:
    subset = (_memlet(edge) or {}).get("subset")
    ranges = subset.get("ranges", ()) if isinstance(subset, dict) else ()
    return ",".join(f"{each['start']}:{each['end']}:{each['step']}" for each in ranges)


def _loop(block: Node) -> str:
    condition = block["attributes"].get("loop_condition")
    return f"while {_code(condition)}" if condition else "loop"


def _code(code: Any) -> str:
    """The text of a condition, without parentheses around all of it."""
    text = str(code["string_data"] if isinstance(code, dict) else code).strip()
    inner = text[1:-1]
    return inner if text == f"({inner})" and not {"(", ")"} & set(inner) else text


def _plain(expression: object) -> str:
    """An expression of DaCe's without the signs that mark symbols."""
    return str(expression).replace("$", "")


def _after(end: str) -> str:
    """The value after the last one, because ranges of DaCe include their end."""
    if re.fullmatch(r"-?\d+", end):
        return str(int(end) + 1)
    if end.endswith(" - 1"):
        return end.removesuffix(" - 1")
    return end.removeprefix("-1 + ") if end.startswith("-1 + ") else f"{end} + 1"
