"""The accesses of one state: the innermost memlets of its dataflow, and those of the SDFGs that are nested in it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator

from gtstub.frameworks.dace.bounds import lookups
from gtstub.frameworks.dace.bounds.access import (
    OTHER,
    Access,
    Json,
    Location,
    Scope,
    State,
    Subset,
    Unread,
    accessed,
    arrays_of,
    has_offset,
    one,
    subset,
    subset_of,
)
from gtstub.signature.expressions import Expression

_REDUCE = "dace.libraries.standard.nodes.reduce.Reduce"
_REDUCE_WITH_SKIP_VALUES = "gt4py.next.program_processors.runners.dace.library_nodes.reduce_with_skip_values."


def accesses(
    state: Json, scope: Scope, sdfg: Json, in_sdfg: Callable[[Json, Scope], Iterator[Access | Unread]]
) -> Iterator[Access | Unread]:
    """The accesses of a state in a scope; `in_sdfg` finds those of a nested SDFG."""
    here = State(state, sdfg)
    scopes = _Scopes(here, scope)
    for node, document in here.nodes.items():
        match document["type"]:
            case "Tasklet":
                yield from lookups.of_tasklet(here, node, scopes.of(node))
            case "AccessNode":
                yield from _copies(here, node, scopes.of(node))
            case "NestedSDFG":
                yield from _nested(here, node, scopes.of(node), in_sdfg)
            case "LibraryNode":
                yield from _library(here, node, scopes.of(node))
            case "MapEntry" | "MapExit":
                pass
            case _:
                yield from _unread(here, node, scopes.of(node))


class _Scopes:
    """The scope of each node: that of the state, inside all maps around the node, with the views that are there."""

    def __init__(self, state: State, scope: Scope) -> None:
        self._state = state
        self._top = scope
        self._inside: dict[int | None, Scope] = {}
        self._views: dict[int | None, list[int]] = collections.defaultdict(list)
        for node, document in state.nodes.items():
            if document["type"] == "AccessNode" and state.is_view(document["attributes"]["data"]):
                self._views[self._entry(node)].append(node)

    def of(self, node: int) -> Scope:
        """The scope of a node; that of a map's entry is outside the map."""
        entry = self._entry(node)
        if entry not in self._inside:
            self._inside[entry] = self._with_views(entry, self._top if entry is None else self._in_map(entry))
        return self._inside[entry]

    def _entry(self, node: int) -> int | None:
        around = self._state.nodes[node].get("scope_entry")
        return None if around is None else int(around)

    def _in_map(self, entry: int) -> Scope:
        outer, attributes = self.of(entry), self._state.nodes[entry]["attributes"]
        if self._state.kind(entry) != "MapEntry":
            return outer.when(None)
        dynamic = {str(each["dst_connector"]) for each in self._state.into[entry]}
        outer = outer.without({name for name in dynamic if not name.startswith("IN_")})
        subset = subset_of(attributes["range"])
        if subset is None:
            return outer.without(set(attributes["params"])).when(None)
        ends = [(outer.value(first), outer.value(last)) for first, last in subset]
        return outer.inside(dict(zip(attributes["params"], ends, strict=True)))

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


def _copies(state: State, node: int, scope: Scope) -> Iterator[Access | Unread]:
    """What is copied to this container, and from it to the exit of a map."""
    name = str(state.nodes[node]["attributes"]["data"])
    if state.is_view(name):
        if "Reference" in state.arrays[name]["type"]:
            yield from _unread(state, node, scope)
        return
    for edge in state.into[node]:
        if state.kind(edge["src"]) in ("AccessNode", "MapEntry"):
            source = state.source(edge)
            if source is None:
                continue
            if edge.get("src_connector") == "views":  # What is written to the view is not known.
                yield from _unread(state, node, scope)
                continue
            yield from accessed(scope, edge, source, name, of_source=True)
            yield from accessed(scope, edge, source, name, of_source=False)
    for edge in state.out[node]:
        if state.kind(edge["dst"]) == "MapExit" and (destination := state.destination(edge)) is not None:
            yield from accessed(scope, edge, name, destination, of_source=True)
            yield from accessed(scope, edge, name, destination, of_source=False)


def _library(state: State, node: int, scope: Scope) -> Iterator[Access | Unread]:
    """A reduction reads its input and writes its output. With skip values, it may leave out parts of the input."""
    path = str(state.nodes[node].get("classpath"))
    is_known = path == _REDUCE or path.startswith(_REDUCE_WITH_SKIP_VALUES)
    for edge in state.into[node]:
        is_sure = path == _REDUCE or (is_known and edge["dst_connector"] == "_mask")
        yield from accessed(scope.when(() if is_sure else None), edge, state.source(edge), None, of_source=True)
    for edge in state.out[node]:
        sure = scope.when(() if is_known else None)
        yield from accessed(sure, edge, None, state.destination(edge), of_source=False)


def _nested(
    state: State, node: int, scope: Scope, in_sdfg: Callable[[Json, Scope], Iterator[Access | Unread]]
) -> Iterator[Access | Unread]:
    document = state.nodes[node]
    sdfg = document["attributes"]["sdfg"]
    arrays = arrays_of(sdfg)
    mapping = document["attributes"].get("symbol_mapping", {})
    values = {name: scope.value(text) for name, text in mapping.items()}
    symbols = {name: value for name, value in values.items() if value is not None}
    inner = dataclasses.replace(scope, symbols=symbols, containers={})
    containers: dict[str, Location] = {}
    ends = [(edge["dst_connector"], state.source(edge), edge, True) for edge in state.into[node]]
    ends += [(edge["src_connector"], state.destination(edge), edge, False) for edge in state.out[node]]
    unclear = set()
    for connector, name, edge, is_source in ends:
        if name is None or connector not in arrays:
            continue
        part = subset(edge, name if is_source else None, None if is_source else name, of_source=is_source)
        location = _part(scope, name, part, arrays[connector], inner)
        if location is None or containers.get(connector, location) != location:
            unclear.add(connector)
            yield from one(scope.unread(name, OTHER))
        else:
            containers[connector] = location
    left = {name: location for name, location in containers.items() if name not in unclear}
    yield from in_sdfg(sdfg, dataclasses.replace(inner, containers=left))


def _unread(state: State, node: int, scope: Scope) -> Iterator[Access | Unread]:
    ends = [state.source(edge) for edge in state.into[node]] + [state.destination(edge) for edge in state.out[node]]
    for name in ends:
        yield from one(scope.unread(name or "", OTHER))
