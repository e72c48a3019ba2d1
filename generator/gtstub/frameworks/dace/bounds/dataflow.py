"""The JSON form of an SDFG's containers and memlets, and what the edges of a state connect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def arrays_of(sdfg: Json) -> Json:
    """The descriptors of all containers of an SDFG by name."""
    found: Json = sdfg["attributes"].get("_arrays", {})
    return found


def has_offset(descriptor: Json) -> bool:
    """Whether DaCe adds something to the indices of a container."""
    return any(str(each) != "0" for each in descriptor["attributes"].get("offset") or ())


Subset = tuple[tuple[str, str], ...] | None
"""The texts of the first and the last index on each axis; None for subsets of another kind."""


def subset_of(document: Any) -> Subset:
    """A subset in a memlet's JSON form."""
    if not isinstance(document, dict) or document.get("type") != "Range":
        return None
    ranges = document["ranges"]
    if any(str(each["step"]) != "1" or str(each["tile"]) != "1" for each in ranges):
        return None
    return tuple((str(each["start"]), str(each["end"])) for each in ranges)


class State:
    """The nodes and edges of a state by their relations."""

    def __init__(self, state: Json, sdfg: Json) -> None:
        self.arrays = arrays_of(sdfg)
        self.nodes: dict[int, Json] = {int(node["id"]): node for node in state["nodes"]}
        self.edges: list[Json] = [
            edge for edge in state["edges"] if edge["attributes"]["data"].get("attributes", {}).get("data")
        ]
        self.into: dict[int, list[Json]] = {node: [] for node in self.nodes}
        self.out: dict[int, list[Json]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            self.into[int(edge["dst"])].append(edge)
            self.out[int(edge["src"])].append(edge)

    def kind(self, node: str | int) -> str:
        return str(self.nodes[int(node)]["type"])

    def entry(self, node: int) -> int | None:
        """The entry of the innermost map around a node; of a map's entry, that of the map around it."""
        around = self.nodes[node].get("scope_entry")
        return None if around is None else int(around)

    def parameters(self, node: int) -> Iterator[str]:
        """The variables of all maps around a node."""
        entry = self.entry(node)
        while entry is not None:
            yield from self.nodes[entry]["attributes"].get("params", ())
            entry = self.entry(entry)

    def source(self, edge: Json) -> str | None:
        """The container from which the data of an edge comes, through the entries of maps."""
        first = self.first(edge)
        return None if first is None else self.container(first["src"])

    def first(self, edge: Json) -> Json | None:
        """The edge that brings the data of an edge to the entry of the outermost map that it passes, or the edge."""
        while self.kind(edge["src"]).endswith("Entry"):
            connector = str(edge["src_connector"]).replace("OUT_", "IN_", 1)
            outer = [each for each in self.into[int(edge["src"])] if each["dst_connector"] == connector]
            if len(outer) != 1:
                return None
            edge = outer[0]
        return edge

    def destination(self, edge: Json) -> str | None:
        """The container to which the data of an edge goes, through the exits of maps."""
        while self.kind(edge["dst"]).endswith("Exit"):
            connector = str(edge["dst_connector"]).replace("IN_", "OUT_", 1)
            outer = [each for each in self.out[int(edge["dst"])] if each["src_connector"] == connector]
            if len(outer) != 1:
                return None
            edge = outer[0]
        return self.container(edge["dst"])

    def container(self, node: str | int) -> str | None:
        """The container of an access node; None for another node."""
        if self.kind(node) != "AccessNode":
            return None
        return str(self.nodes[int(node)]["attributes"]["data"])

    def only_element(self, container: str) -> Subset:
        """The element of a container that has one; None for others."""
        shape = self.arrays[container]["attributes"].get("shape") or ("1",)
        return (("0", "0"),) * len(shape) if all(str(size) == "1" for size in shape) else None

    def is_view(self, container: str | None) -> bool:
        """Whether a container is a name for a part of another one: a view, or a reference."""
        type_ = self.arrays.get(container or "", {"type": ""})["type"]
        return "View" in type_ or "Reference" in type_


def subset(edge: Json, source: str | None, destination: str | None, *, of_source: bool) -> Subset:
    """The subset of the container at one end of an edge. The other end may be no container."""
    memlet = edge["attributes"]["data"]["attributes"]
    is_about_source = memlet["data"] == source
    if source == destination:
        is_about_source = bool(memlet.get("is_data_src", True))
    elif not is_about_source and memlet["data"] != destination:
        return None
    return subset_of(memlet.get("subset" if is_about_source == of_source else "other_subset"))


def is_dynamic(edge: Json) -> bool:
    """Whether an edge may move fewer elements than its subset has, depending on data."""
    return bool(edge["attributes"]["data"]["attributes"].get("dynamic"))
