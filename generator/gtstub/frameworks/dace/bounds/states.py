"""The accesses of one state: the innermost memlets of its dataflow, and those of the SDFGs that are nested in it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator

from gtstub.frameworks.dace.bounds import conditions, lookups
from gtstub.frameworks.dace.bounds.access import (
    DATA_CONDITION,
    LOOP,
    OTHER,
    Access,
    Location,
    Lookup,
    Range,
    Scope,
    Unread,
)
from gtstub.frameworks.dace.bounds.dataflow import (
    Json,
    State,
    Subset,
    arrays_of,
    has_offset,
    is_dynamic,
    subset,
    subset_of,
)
from gtstub.signature.expressions import Expression, symbol
from gtstub.signature.facts import canonical

_REDUCE = "dace.libraries.standard.nodes.reduce.Reduce"
_REDUCE_WITH_SKIP_VALUES = "gt4py.next.program_processors.runners.dace.library_nodes.reduce_with_skip_values."

Accesses = Iterator[Access | Unread]


def accesses(state: Json, scope: Scope, sdfg: Json, in_sdfg: Callable[[Json, Scope], Accesses]) -> Accesses:
    """The accesses of a state in a scope; `in_sdfg` finds those of a nested SDFG."""
    here = State(state, sdfg)
    scopes = _Scopes(here, scope)
    for node, document in here.nodes.items():
        match document["type"]:
            case "Tasklet":
                yield from lookups.of_tasklet(here, node, scopes.of(node).as_unit())
            case "AccessNode":
                yield from _copies(here, node, scopes.of(node))
            case "NestedSDFG":
                yield from _nested(here, node, scopes.of(node), in_sdfg)
            case "LibraryNode":
                yield from _library(here, node, scopes.of(node).as_unit())
            case "MapEntry":
                yield from _ends(here, node, scopes.of(node))
            case "MapExit":
                pass
            case _:
                yield from _unread(here, node, scopes.of(node).as_unit())


class _Scopes:
    """The scope of each node: that of the state, inside all maps around the node, with the views that are there."""

    def __init__(self, state: State, scope: Scope) -> None:
        self._state = state
        self._top = scope
        self._inside: dict[int | None, Scope] = {}
        self._views: dict[int | None, list[int]] = collections.defaultdict(list)
        for node, document in state.nodes.items():
            if document["type"] == "AccessNode" and state.is_view(document["attributes"]["data"]):
                self._views[state.entry(node)].append(node)

    def of(self, node: int) -> Scope:
        """The scope of a node; that of a map's entry is outside the map."""
        entry = self._state.entry(node)
        if entry not in self._inside:
            self._inside[entry] = self._with_views(entry, self._top if entry is None else self._in_map(entry))
        return self._inside[entry]

    def _in_map(self, entry: int) -> Scope:
        outer, attributes = self.of(entry), self._state.nodes[entry]["attributes"]
        is_outermost = outer.unit is None
        outer = outer.as_unit()
        if self._state.kind(entry) != "MapEntry":
            return outer.in_doubt(OTHER)
        parameters = set(attributes["params"])
        dynamic = {str(each["dst_connector"]) for each in self._state.into[entry]}
        outer = outer.without({name for name in dynamic if not name.startswith("IN_")})
        outer = dataclasses.replace(outer, data=outer.data | parameters)
        subset = subset_of(attributes["range"])
        if subset is None:
            return outer.without(parameters).in_doubt(LOOP)
        ends = [(outer.value(first), outer.value(last)) for first, last in subset]
        return outer.inside(dict(zip(attributes["params"], ends, strict=True)), is_parallel=is_outermost)

    def _with_views(self, entry: int | None, scope: Scope) -> Scope:
        containers = dict(scope.containers)
        views = self._views[entry]
        for _ in views:  # A view may be one of another view, which need not come before it.
            for node in views:
                name = self._state.nodes[node]["attributes"]["data"]
                location = self._viewed(node, name, dataclasses.replace(scope, containers=containers))
                containers.pop(name, None)
                if location is not None:
                    containers[name] = location
        return dataclasses.replace(scope, containers=containers)

    def _viewed(self, node: int, name: str, scope: Scope) -> Location | None:
        """The location of a view that is read, or written; None for others, and for views with several nodes."""
        state = self._state
        if sum(each["attributes"].get("data") == name for each in state.nodes.values()) > 1:
            return None
        if len(state.into[node]) == 1 and (source := state.source(state.into[node][0])) is not None:
            part = subset(state.into[node][0], source, name, of_source=True)
            return _part(scope, source, part, state.arrays[name], scope)
        return None


def _part(scope: Scope, name: str, part: Subset, descriptor: Json, inner: Scope) -> Location | None:
    """
    The location of a container that is a part of another one: a view, or an argument of a nested SDFG. `inner` gives
    the symbols in its descriptor their meaning. The axes of both correspond by their strides.
    """
    whole = scope.containers.get(name)
    if whole is None or part is None or len(part) != len(whole.axes):
        return None
    firsts = scope.values(first for first, _ in part)
    if firsts is None:
        return None
    sizes = tuple(map(str, descriptor["attributes"].get("shape", ("1",))))
    strides = tuple(map(inner.value, descriptor["attributes"].get("strides", ("1",))))
    axes = _matched(sizes, strides, whole.strides, part)
    if axes is None or has_offset(descriptor):
        return None
    return Location(
        whole.array,
        whole.index(firsts),
        tuple(None if axis is None else whole.axes[axis] for axis in axes),
        strides,
        whole.sizes,
    )


def _matched(
    sizes: tuple[str, ...],
    strides: tuple[Expression | None, ...],
    outer: tuple[Expression | None, ...],
    part: tuple[tuple[str, str], ...],
) -> list[int | None] | None:
    """
    The axis of the whole for each axis of a part. Each axis of more than one element needs one with the same stride,
    and all axes that have none of the part's must have one element there.
    """
    single = [first == last for first, last in part]
    if len(sizes) == len(outer):
        fits = (size == "1" or (a is not None and a == b) for size, a, b in zip(sizes, strides, outer, strict=True))
        return list(range(len(outer))) if all(fits) else None
    found: list[int | None] = []
    left = [axis for axis in range(len(outer)) if not single[axis]]
    for size, stride in zip(sizes, strides, strict=True):
        if left and stride is not None and outer[left[0]] == stride:
            found.append(left.pop(0))
        elif size == "1":
            found.append(None)
        else:
            return None
    return found if not left else None


# --- Nodes ------------------------------------------------------------------------------------------------------------


def _copies(state: State, node: int, scope: Scope) -> Accesses:
    """What is copied to this container, and from it to the exit of a map. A view with a location copies nothing."""
    name = str(state.nodes[node]["attributes"]["data"])
    if state.is_view(name):
        if name not in scope.containers:
            yield from _unread(state, node, scope.as_unit())
        return
    for edge in state.into[node]:
        if state.kind(edge["src"]) in ("AccessNode", "MapEntry") and (source := state.source(edge)) is not None:
            if edge.get("src_connector") == "views":  # What is written to the view is not known.
                yield from _unread(state, node, scope.as_unit())
            else:
                yield from _copy(state, scope, edge, source, name)
    for edge in state.out[node]:
        if state.kind(edge["dst"]) == "MapExit" and (destination := state.destination(edge)) is not None:
            yield from _copy(state, scope, edge, name, destination)


def _copy(state: State, scope: Scope, edge: Json, source: str, destination: str) -> Accesses:
    unit = scope.as_unit()

    def side(name: str, *, is_write: bool) -> Access | Unread:
        part = subset(edge, source, destination, of_source=not is_write)
        if part is None and "other_subset" not in edge["attributes"]["data"]["attributes"]:
            part = state.only_element(name)
        (found,) = unit.access(name, part, is_write=is_write, is_dynamic=is_dynamic(edge))
        return found

    read, write = side(source, is_write=False), side(destination, is_write=True)
    if scope.unit is None and isinstance(read, Access) and isinstance(write, Access):
        read, write = _element_by_element(read, write, scope)
    yield from (read, write)


def _element_by_element(read: Access, write: Access, scope: Scope) -> tuple[Access, Access]:
    """A copy as a loop over its elements, if both sides have the same axes of more than one element."""
    if len(_long_axes(read)) != len(_long_axes(write)):
        return read, write
    ranges, made = list(read.ranges), (list(read.axes), list(write.axes))
    for (source, first, last), (destination, start, stop) in zip(_long_axes(read), _long_axes(write), strict=True):
        if last - first != stop - start:
            return read, write
        name = f"copy#{next(scope.counter)}"
        ranges.append(Range(name, Expression(), last - first, is_parallel=True))
        made[0][source] = (first + symbol(name),) * 2
        made[1][destination] = (start + symbol(name),) * 2
    return (
        dataclasses.replace(read, ranges=tuple(ranges), axes=tuple(made[0])),
        dataclasses.replace(write, ranges=tuple(ranges), axes=tuple(made[1])),
    )


def _long_axes(access: Access) -> list[tuple[int, Expression, Expression]]:
    """The axes on which an access has more than one element, with the first and the last index."""
    return [
        (axis, *ends) for axis, ends in enumerate(access.axes) if not isinstance(ends, Lookup) and ends[0] != ends[1]
    ]


def _ends(state: State, entry: int, scope: Scope) -> Accesses:
    """The scalars from which a map takes the ends of its range."""
    for edge in state.into[entry]:
        if not str(edge["dst_connector"]).startswith("IN_") and (name := state.source(edge)) is not None:
            part = subset(edge, name, None, of_source=True)
            yield from scope.as_unit().access(name, part, is_write=False, is_dynamic=is_dynamic(edge))


def _library(state: State, node: int, scope: Scope) -> Accesses:
    """A reduction reads its input and writes its output. With skip values, it may leave out parts of the input."""
    path = str(state.nodes[node].get("classpath"))
    is_known = path == _REDUCE or path.startswith(_REDUCE_WITH_SKIP_VALUES)
    unsure = scope.in_doubt(DATA_CONDITION if is_known else OTHER)
    for edge in state.into[node]:
        if (name := state.source(edge)) is not None:
            is_sure = path == _REDUCE or (is_known and edge["dst_connector"] == "_mask")
            part = subset(edge, name, None, of_source=True)
            yield from (scope if is_sure else unsure).access(name, part, is_write=False, is_dynamic=is_dynamic(edge))
    for edge in state.out[node]:
        if (name := state.destination(edge)) is not None:
            part = subset(edge, None, name, of_source=False)
            yield from (scope if is_known else unsure).access(name, part, is_write=True, is_dynamic=is_dynamic(edge))


def _nested(state: State, node: int, scope: Scope, in_sdfg: Callable[[Json, Scope], Accesses]) -> Accesses:
    document = state.nodes[node]
    sdfg = document["attributes"]["sdfg"]
    inner = _inside_nested(state, node, scope)
    containers: dict[str, Location] = {}
    ends = [(str(edge["dst_connector"]), state.source(edge), edge, True) for edge in state.into[node]]
    ends += [(str(edge["src_connector"]), state.destination(edge), edge, False) for edge in state.out[node]]
    unclear = set()
    for connector, name, edge, is_source in ends:
        if name is None or connector not in arrays_of(sdfg):
            continue
        part = subset(edge, name if is_source else None, None if is_source else name, of_source=is_source)
        location = _part(scope, name, part, arrays_of(sdfg)[connector], inner)
        if location is None or containers.get(connector, location) != location:
            unclear.add(connector)
            yield from scope.as_unit().unread(name, OTHER, is_write=not is_source)
        else:
            containers[connector] = location
    left = {name: location for name, location in containers.items() if name not in unclear}
    yield from in_sdfg(sdfg, dataclasses.replace(inner, containers=left))


def _inside_nested(state: State, node: int, scope: Scope) -> Scope:
    """What the names of a nested SDFG stand for that come from outside, but its containers."""
    attributes = state.nodes[node]["attributes"]
    values, choices, texts, data = {}, {}, {}, set()
    for name, text in attributes.get("symbol_mapping", {}).items():
        if (found := canonical(str(text), scope.texts)) is not None:
            texts[name] = found
        if (value := scope.value(text)) is not None:
            values[name] = value
        elif scope.depends_on_data(str(text)):
            data.add(name)
        else:
            choices[name] = conditions.choice(str(text), scope, next(scope.counter))
    for edge in state.into[node]:
        source, connector = str(state.source(edge)), str(edge["dst_connector"])
        if source in scope.data:
            data.add(connector)
        elif connector in arrays_of(attributes["sdfg"]):
            values |= {connector: scope.symbols[source]} if source in scope.symbols else {}
            texts |= {connector: scope.texts[source]} if source in scope.texts else {}
    return dataclasses.replace(scope, symbols=values, choices=choices, texts=texts, data=frozenset(data), containers={})


def _unread(state: State, node: int, scope: Scope) -> Accesses:
    """The accesses of a node of another kind."""
    for is_write, edges in ((False, state.into[node]), (True, state.out[node])):
        for edge in edges:
            name = state.destination(edge) if is_write else state.source(edge)
            yield from scope.unread(name or "", OTHER, is_write=is_write)
