"""What the edges of a state connect, through the entries and exits of maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gtstub.stub.sdfg.model import Container, Edge, Node, State, Subset


def around(state: State, node: Node) -> Iterator[Node]:
    """The entries of all maps around a node, the innermost one first."""
    while node.entry is not None:
        node = state.nodes[node.entry]
        yield node


def outermost(state: State, node: int) -> int:
    """The entry of the outermost map around a node, or the node."""
    return [node, *(entry.id for entry in around(state, state.nodes[node]))][-1]


class Dataflow:
    """The nodes of a state by their relations. Edges that only order nodes are left out."""

    def __init__(self, state: State, containers: Mapping[str, Container]) -> None:
        self.state = state
        self.containers = containers
        self.nodes = state.nodes
        self.edges = [edge for edge in state.edges if edge.data]
        self.into: dict[int, list[Edge]] = {node: [] for node in self.nodes}
        self.out: dict[int, list[Edge]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            self.into[edge.dst].append(edge)
            self.out[edge.src].append(edge)

    def source(self, edge: Edge) -> str | None:
        """The container from which the data of an edge comes, through the entries of maps."""
        first = self.first(edge)
        return None if first is None else self.container(first.src)

    def first(self, edge: Edge) -> Edge | None:
        """The edge that brings the data of an edge to the entry of the outermost map that it passes, or the edge."""
        while self.nodes[edge.src].is_entry:
            connector = str(edge.src_connector).replace("OUT_", "IN_", 1)
            outer = [each for each in self.into[edge.src] if each.dst_connector == connector]
            if len(outer) != 1:
                return None
            edge = outer[0]
        return edge

    def destination(self, edge: Edge) -> str | None:
        """The container to which the data of an edge goes, through the exits of maps."""
        while self.nodes[edge.dst].is_exit:
            connector = str(edge.dst_connector).replace("IN_", "OUT_", 1)
            outer = [each for each in self.out[edge.dst] if each.src_connector == connector]
            if len(outer) != 1:
                return None
            edge = outer[0]
        return self.container(edge.dst)

    def inner(self, edge: Edge, entries: tuple[Node, ...] = ()) -> Iterator[tuple[Edge, tuple[Node, ...]]]:
        """The edges in maps that read what an edge brings, or write what it takes away, each with the maps' entries."""
        source, target = self.nodes[edge.src], self.nodes[edge.dst]
        into, out = edge.dst_connector or "", edge.src_connector or ""
        if target.is_entry and into.startswith("IN_"):
            entry, edges = target, [each for each in self.out[target.id] if each.src_connector == f"OUT_{into[3:]}"]
        elif source.is_exit and source.entry is not None and out.startswith("OUT_"):
            entry = self.nodes[source.entry]
            edges = [each for each in self.into[source.id] if each.dst_connector == f"IN_{out[4:]}"]
        else:
            yield edge, entries
            return
        for each in edges:
            yield from self.inner(each, (*entries, entry))

    def inputs(self, node: Node) -> list[Edge]:
        """The edges that write at an access node. The edge from what a view shows writes nothing."""
        return [edge for edge in self.into[node.id] if edge.dst_connector != "views"]

    def outputs(self, node: Node) -> list[Edge]:
        """The edges that read at an access node. The edge to what a view shows reads nothing."""
        return [edge for edge in self.out[node.id] if edge.src_connector != "views"]

    @property
    def access_nodes(self) -> Iterator[Node]:
        return (node for node in self.nodes.values() if node.kind == "AccessNode")

    def container(self, node: int) -> str | None:
        """The container of an access node; None for another node."""
        return self.nodes[node].container or None

    def reads(self, node: Node) -> Iterator[tuple[Edge, str, Subset | None]]:
        """The edges that bring data to a node, each with the container from which it comes, and the subset of that."""
        for edge in self.into[node.id]:
            if (source := self.source(edge)) is not None:
                yield edge, source, _part(edge, source, self.destination(edge), of_source=True)

    def writes(self, node: Node) -> Iterator[tuple[Edge, str, Subset | None]]:
        """The edges that take data from a node, each with the container to which it goes, and the subset of that."""
        for edge in self.out[node.id]:
            if (destination := self.destination(edge)) is not None:
                yield edge, destination, _part(edge, self.source(edge), destination, of_source=False)

    def read(self, edge: Edge) -> Subset | None:
        """The subset of the container from which the data of an edge comes; None if it is left out."""
        return _part(edge, self.source(edge), self.destination(edge), of_source=True)

    def write(self, edge: Edge) -> Subset | None:
        """The subset of the container to which the data of an edge goes; None if it is left out."""
        return _part(edge, self.source(edge), self.destination(edge), of_source=False)


def _part(edge: Edge, source: str | None, destination: str | None, *, of_source: bool) -> Subset | None:
    is_about_source = edge.data == source
    if source == destination:
        is_about_source = edge.is_data_src is not False
    elif not is_about_source and edge.data != destination:
        return None
    return edge.subset if is_about_source == of_source else edge.other_subset
