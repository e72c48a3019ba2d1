"""
The accesses of an SDFG to its arguments, what its names and containers mean at a place, and what the edges of a state
connect.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gtstub.signature.expressions import Expression, parse, symbol
from gtstub.signature.model import Condition

Json = Mapping[str, Any]

DATA_CONDITION = "in a branch on data"
COMPUTED = "at computed indices"
OTHER = "in a form that is not read"
"""Why it is not known which elements an access reaches."""


@dataclasses.dataclass(frozen=True)
class Range:
    """A variable of a loop, which takes all values from `first` to `last`, or none if `last` is less than `first`."""

    variable: str
    first: Expression
    last: Expression


@dataclasses.dataclass(frozen=True)
class Location:
    """
    Where the elements of a container are. `array` is an argument of the SDFG, or a temporary if `sizes` are given.
    `base` has the indices in the array of the container's first element, `axes` the array's axis for each axis of the
    container, or None for an axis of one element. `strides` are in elements, None where they are not known.
    """

    array: str
    base: tuple[Expression, ...]
    axes: tuple[int | None, ...]
    strides: tuple[Expression | None, ...]
    sizes: tuple[Expression | None, ...] | None = None

    def index(self, of: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The index in the array of an index in the container."""
        found = list(self.base)
        for axis, value in zip(self.axes, of, strict=True):
            if axis is not None:
                found[axis] += value
        return tuple(found)


@dataclasses.dataclass(frozen=True)
class Lookup:
    """An index that is read from a table, at `row` and `column`, with `plus` added. -1 may stand for no neighbor."""

    table: str
    row: Expression
    column: Expression
    plus: Expression


@dataclasses.dataclass(frozen=True)
class Access:
    """
    The access to the elements between `first` and `last` on each axis, for all values of the variables of `ranges`, if
    `conditions` hold. An axis with a lookup has no expressions.
    """

    array: str
    ranges: tuple[Range, ...]
    conditions: tuple[Condition, ...]
    axes: tuple[tuple[Expression, Expression] | Lookup, ...]
    sizes: tuple[Expression | None, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Unread:
    """An access of which it is not known which elements it reaches."""

    array: str
    why: str


@dataclasses.dataclass(frozen=True)
class Scope:
    """
    What holds at a place in the SDFG: the meaning of each symbol in terms of the SDFG's arguments and of variables, the
    location of each container, the loops around the place, and the conditions under which it is reached. They are
    None if they are not known.
    """

    symbols: Mapping[str, Expression]
    containers: Mapping[str, Location]
    ranges: tuple[Range, ...] = ()
    conditions: tuple[Condition, ...] | None = ()
    counter: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def value(self, text: Any) -> Expression | None:
        """An expression in the arguments and in variables; None if it has another form or unknown symbols."""
        found = _parsed(text if isinstance(text, str) else str(text))
        if found is None or not found.symbols <= self.symbols.keys():
            return None
        return found.replace(self.symbols)

    def values(self, texts: Iterable[str]) -> tuple[Expression, ...] | None:
        """Several expressions; None if one of them is not known."""
        found = tuple(self.value(text) for text in texts)
        known = tuple(value for value in found if value is not None)
        return known if len(known) == len(found) else None

    def inside(self, loops: Mapping[str, tuple[Expression | None, Expression | None]]) -> Scope:
        """The scope in loops over variables of these names. Loops with unknown ends make it unknown what is reached."""
        symbols, ranges, conditions = dict(self.symbols), list(self.ranges), self.conditions
        for name, (first, last) in loops.items():
            symbols.pop(name, None)
            if first is None or last is None:
                conditions = None
                continue
            variable = f"{name}#{next(self.counter)}"
            symbols[name] = symbol(variable)
            ranges.append(Range(variable, first, last))
        return dataclasses.replace(self, symbols=symbols, ranges=tuple(ranges), conditions=conditions)

    def when(self, conditions: tuple[Condition, ...] | None) -> Scope:
        """The scope in a branch."""
        known = None if self.conditions is None or conditions is None else (*self.conditions, *conditions)
        return dataclasses.replace(self, conditions=known)

    def without(self, names: set[str]) -> Scope:
        """The scope in which these symbols have unknown values."""
        left = {name: value for name, value in self.symbols.items() if name not in names}
        return dataclasses.replace(self, symbols=left)

    def unread(self, name: str, why: str) -> Unread | None:
        """An unknown access to a container, and why it is unknown inside known conditions; None for a temporary."""
        location = self.containers.get(name)
        if location is None or location.sizes is not None:
            return None
        return Unread(location.array, DATA_CONDITION if self.conditions is None else why)

    def access(self, name: str, subset: Subset, is_dynamic: bool = False) -> Access | Unread | None:
        """
        The access to a subset of a container, of which a dynamic one may leave out elements. None if the container is a
        temporary.
        """
        location = self.containers.get(name)
        if location is None or location.sizes is not None:
            return None
        if self.conditions is None or subset is None or is_dynamic:
            return self.unread(name, DATA_CONDITION if is_dynamic else OTHER)
        firsts, lasts = self.values(first for first, _ in subset), self.values(last for _, last in subset)
        if firsts is None or lasts is None or len(subset) != len(location.axes):
            return self.unread(name, OTHER)
        axes = zip(location.index(firsts), location.index(lasts), strict=True)
        return Access(location.array, self.ranges, self.conditions, tuple(axes))


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


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Expression | None:
    return parse(_TYPED_SYMBOL.sub(r"\1", text))


_TYPED_SYMBOL = re.compile(r"symbol\((\$?\w+), dtype=dace\.\w+\)")
"""DaCe's text for a symbol whose type differs from that of the others in an expression."""


# --- The dataflow of a state ------------------------------------------------------------------------------------------


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

    def source(self, edge: Json) -> str | None:
        """The container from which the data of an edge comes, through the entries of maps."""
        first = self.first(edge)
        return None if first is None else self._container(first["src"])

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
        return self._container(edge["dst"])

    def _container(self, node: str | int) -> str | None:
        if self.kind(node) != "AccessNode":
            return None
        return str(self.nodes[int(node)]["attributes"]["data"])

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


def accessed(
    scope: Scope, edge: Json, source: str | None, destination: str | None, *, of_source: bool
) -> Iterator[Access | Unread]:
    """The access to the container at one end of an edge; none if it is a temporary."""
    name = source if of_source else destination
    if name is not None:
        part = subset(edge, source, destination, of_source=of_source)
        yield from one(scope.access(name, part, is_dynamic(edge)))


def one(found: Access | Unread | None) -> Iterator[Access | Unread]:
    if found is not None:
        yield found
