"""The accesses of one state: the innermost memlets of its dataflow, and those of the SDFGs that are nested in it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator

from gtstub.stub.bounds import conditions, lookups, names
from gtstub.stub.bounds.access import (
    DATA_CONDITION,
    LOOP,
    OTHER,
    Access,
    Allocation,
    BoundedLoop,
    Location,
    Lookup,
    Scope,
    Unread,
)
from gtstub.stub.bounds.blocks import is_block
from gtstub.stub.bounds.wrapping import Typed
from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.model import Container, Edge, Node, Range, Sdfg, State, Subset
from gtstub.stub.signature.expressions import Expression, parse, symbol
from gtstub.stub.signature.facts import fact_text

_REDUCE = "dace.libraries.standard.nodes.reduce.Reduce"
_REDUCE_WITH_SKIP_VALUES = "gt4py.next.program_processors.runners.dace.library_nodes.reduce_with_skip_values."

Accesses = Iterator[Access | Unread]


def accesses(state: State, scope: Scope, sdfg: Sdfg, in_sdfg: Callable[[Sdfg, Scope], Accesses]) -> Accesses:
    """The accesses of a state in a scope; `in_sdfg` finds those of a nested SDFG."""
    here = Dataflow(state, sdfg.containers)
    scopes = _Scopes(here, scope)
    for node in here.nodes.values():
        _allocate(here, node, scopes.of(node))
        match node.kind:
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


def _allocate(state: Dataflow, node: Node, scope: Scope) -> None:
    """Notes that a temporary is used: its memory is allocated before that, also where maps behind it have no rounds."""
    location = scope.containers.get(node.container)
    if location is None or location.sizes is None or scope.doubt or _is_view(state, node):
        return
    is_own = location.array.startswith(f"{node.container}#")
    if is_own and state.containers[node.container].storage in _ALLOCATED:
        sizes = tuple(map(scope.factors, state.containers[node.container].shape))
        made = Allocation(node.container, scope.loops, scope.conditions, sizes)
        if made not in scope.allocations:
            scope.allocations.append(made)


_ALLOCATED = ("Default", "CPU_Heap", "GPU_Global")
"""Where a call allocates memory of the size that it computes."""


class _Scopes:
    """The scope of each node: that of the state, inside all maps around the node, with the views that are there."""

    def __init__(self, state: Dataflow, scope: Scope) -> None:
        self._state = state
        self._top = scope
        self._inside: dict[int | None, Scope] = {}
        self._views: dict[int | None, list[Node]] = collections.defaultdict(list)
        for node in state.nodes.values():
            if _is_view(state, node):
                self._views[node.entry].append(node)

    def of(self, node: Node) -> Scope:
        """The scope of a node; that of a map's entry is outside the map."""
        entry = node.entry
        if entry not in self._inside:
            self._inside[entry] = self._with_views(
                entry, self._top if entry is None else self._in_map(self._state.nodes[entry])
            )
        return self._inside[entry]

    def _in_map(self, entry: Node) -> Scope:
        outer = self.of(entry)
        is_outermost = outer.unit is None
        outer = outer.as_unit()
        if entry.kind != "MapEntry":
            return outer.in_doubt(OTHER)
        dynamic = {
            str(edge.dst_connector): outer.typed(name)
            for edge, name, _ in self._state.reads(entry)
            if not str(edge.dst_connector).startswith("IN_")
        }
        known = {name: value for name, value in dynamic.items() if value is not None}
        outer = outer.without(dynamic).knowing(known)
        is_multicore = entry.schedule == "CPU_Multicore" or (entry.schedule == "Default" and is_outermost)
        outer = dataclasses.replace(
            outer, data=outer.data.union(entry.variables), is_multicore=outer.is_multicore or is_multicore
        )
        if entry.ranges.strided is None:
            return outer.without(entry.variables).in_doubt(LOOP)
        ranges = [outer.rounds(*each) for each in entry.ranges.strided]
        return outer.inside(dict(zip(entry.variables, ranges, strict=True)), is_parallel=is_outermost)

    def _with_views(self, entry: int | None, scope: Scope) -> Scope:
        containers = dict(scope.containers)
        views = self._views[entry]
        for _ in views:  # A view may be one of another view, which need not come before it.
            for node in views:
                location = self._viewed(node, dataclasses.replace(scope, containers=containers))
                containers.pop(node.container, None)
                if location is not None:
                    containers[node.container] = location
        return dataclasses.replace(scope, containers=containers)

    def _viewed(self, node: Node, scope: Scope) -> Location | None:
        """The location of a view that is read, or written; None for others, and for views with several nodes."""
        state = self._state
        if sum(each.container == node.container for each in state.nodes.values()) > 1:
            return None
        match state.into[node.id]:
            case [edge] if (source := state.source(edge)) is not None:
                return _part(scope, source, state.read(edge), state.containers[node.container], scope)
        return None


def _is_view(state: Dataflow, node: Node) -> bool:
    return node.container in state.containers and state.containers[node.container].is_view


def _part(scope: Scope, name: str, subset: Subset | None, container: Container, inner: Scope) -> Location | None:
    """
    The location of a container that is a part of another one: a view, or an argument of a nested SDFG. `inner` gives
    the symbols in its descriptor their meaning. The axes of both correspond by their strides.
    """
    whole, part = scope.containers.get(name), None if subset is None else subset.strided
    if whole is None or part is None or len(part) != len(whole.axes):
        return None
    firsts = scope.values(first for first, _, _ in part)
    if firsts is None:
        return None
    strides = tuple(map(inner.value, container.strides))
    outer = tuple(None if each is None else each * step for each, (_, _, step) in zip(whole.strides, part, strict=True))
    axes = _matched(container.shape, strides, outer, [first == last for first, last, _ in part])
    if axes is None or container.has_offset:
        return None
    return Location(
        whole.array,
        whole.index(firsts),
        tuple(None if axis is None else whole.axes[axis] for axis in axes),
        tuple(1 if axis is None else whole.steps[axis] * part[axis][2] for axis in axes),
        strides,
        whole.sizes,
        whole.is_local,
    )


def _matched(
    sizes: tuple[str, ...],
    strides: tuple[Expression | None, ...],
    outer: tuple[Expression | None, ...],
    single: list[bool],
) -> list[int | None] | None:
    """
    The axis of the whole for each axis of a part. Each axis of more than one element needs one with the same stride,
    and all axes that have none of the part's must have one element there, as `single` says.
    """
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


def _copies(state: Dataflow, node: Node, scope: Scope) -> Accesses:
    """What is copied to this container, and from it to the exit of a map. A view with a location copies nothing."""
    if _is_view(state, node):
        if node.container not in scope.containers:
            yield from _unread(state, node, scope.as_unit())
        return
    for edge, source, _ in state.reads(node):
        if edge.src_connector == "views":  # What is written to the view is not known.
            yield from _unread(state, node, scope.as_unit())
        elif state.nodes[edge.src].kind in ("AccessNode", "MapEntry"):
            yield from _copy(state, scope, edge, source, node.container)
    for edge, destination, _ in state.writes(node):
        if state.nodes[edge.dst].kind == "MapExit":
            yield from _copy(state, scope, edge, node.container, destination)


def _copy(state: Dataflow, scope: Scope, edge: Edge, source: str, destination: str) -> Accesses:
    unit = scope.as_unit()
    if scope.is_multicore and not edge.is_wcr and not scope.doubt:
        _copy_block(state, scope, edge, source, destination)

    def side(name: str, part: Subset | None, *, is_write: bool) -> Access | Unread:
        container = state.containers[name]
        if part is None and edge.other_subset is None and container.has_one_element:
            part = Subset((Range("0", "0"),) * len(container.shape))
        overwrites = is_write and not edge.is_wcr
        return unit.access(
            name, part, is_write=is_write, is_dynamic=edge.is_dynamic, overwrites=overwrites, is_copied=True
        )

    read = side(source, state.read(edge), is_write=False)
    write = side(destination, state.write(edge), is_write=True)
    if scope.unit is None and isinstance(read, Access) and isinstance(write, Access):
        read, write = _element_by_element(read, write, scope)
    yield from (read, write)


def _copy_block(state: Dataflow, scope: Scope, edge: Edge, source: str, destination: str) -> None:
    """Notes how many elements a copy has if DaCe makes it with memcpy."""
    read, written = state.read(edge), state.write(edge)
    locations = [scope.containers.get(name) for name in (source, destination)]
    part = written if read is None else read
    location = locations[read is None]
    if part is None or location is None or any(each is None or each.is_local for each in locations):
        return
    if {source, destination} & _only_in_maps(state):
        return
    if not is_block(state.containers[source], read, state.containers[destination], written):
        return
    sizes: list[tuple[Expression, ...] | None] = [()] * len(location.base)
    for axis, each in zip(location.axes, part.ranges, strict=True):
        if axis is not None and not each.is_point:
            count = parse(f"({each.end}) + 1 - ({each.start})")
            sizes[axis] = None if count is None else scope.factors(str(count))
    name = location.array.partition("#")[0]
    scope.allocations.append(Allocation(name, scope.loops, scope.conditions, tuple(sizes)))


def _only_in_maps(state: Dataflow) -> set[str]:
    """The temporaries that are in maps alone, where DaCe has them in registers."""
    temporaries = {name for name, each in state.containers.items() if each.is_transient and each.storage == "Default"}
    return temporaries - {each.container for each in state.access_nodes if each.entry is None}


def _element_by_element(read: Access, write: Access, scope: Scope) -> tuple[Access, Access]:
    """A copy as a loop over its elements, if both sides have the same axes of more than one element."""
    if len(_long_axes(read)) != len(_long_axes(write)):
        return read, write
    loops, made = list(read.loops), (list(read.axes), list(write.axes))
    for (source, first, last), (destination, start, stop) in zip(_long_axes(read), _long_axes(write), strict=True):
        if last - first != stop - start:
            return read, write
        name = f"copy#{next(scope.counter)}"
        loops.append(BoundedLoop(name, Expression(), last - first, is_parallel=True))
        made[0][source] = (first + symbol(name),) * 2
        made[1][destination] = (start + symbol(name),) * 2
    return (
        dataclasses.replace(read, loops=tuple(loops), axes=tuple(made[0])),
        dataclasses.replace(write, loops=tuple(loops), axes=tuple(made[1])),
    )


def _long_axes(access: Access) -> list[tuple[int, Expression, Expression]]:
    """The axes on which an access has more than one element, with the first and the last index."""
    return [
        (axis, *ends) for axis, ends in enumerate(access.axes) if not isinstance(ends, Lookup) and ends[0] != ends[1]
    ]


def _ends(state: Dataflow, entry: Node, scope: Scope) -> Accesses:
    """The scalars from which a map takes the ends of its range."""
    for edge, name, part in state.reads(entry):
        if not str(edge.dst_connector).startswith("IN_"):
            yield scope.as_unit().access(name, part, is_write=False, is_dynamic=edge.is_dynamic)


def _library(state: Dataflow, node: Node, scope: Scope) -> Accesses:
    """A reduction reads its input and writes its output. With skip values, it may leave out parts of the input."""
    path = node.classpath
    is_known = path == _REDUCE or path.startswith(_REDUCE_WITH_SKIP_VALUES)
    unsure = scope.in_doubt(DATA_CONDITION if is_known else OTHER)
    for edge, name, part in state.reads(node):
        is_sure = path == _REDUCE or (is_known and edge.dst_connector == "_mask")
        here = scope if is_sure else unsure
        yield here.access(name, part, is_write=False, is_dynamic=edge.is_dynamic)
    for edge, name, part in state.writes(node):
        here = scope if is_known else unsure
        yield here.access(name, part, is_write=True, is_dynamic=edge.is_dynamic)


def _nested(state: Dataflow, node: Node, scope: Scope, in_sdfg: Callable[[Sdfg, Scope], Accesses]) -> Accesses:
    sdfg = node.sdfg
    if sdfg is None:
        yield from _unread(state, node, scope.as_unit())
        return
    inner = _inside_nested(state, node, sdfg, scope)
    containers: dict[str, Location] = {}
    ends = [(str(edge.dst_connector), name, part, False) for edge, name, part in state.reads(node)]
    ends += [(str(edge.src_connector), name, part, True) for edge, name, part in state.writes(node)]
    unclear = set()
    for connector, name, part, is_write in ends:
        if connector not in sdfg.containers:
            continue
        location = _part(scope, name, part, sdfg.containers[connector], inner)
        if location is None or containers.get(connector, location) != location:
            unclear.add(connector)
            yield scope.as_unit().unread(name, OTHER, is_write=is_write)
        else:
            containers[connector] = location
    left = {name: location for name, location in containers.items() if name not in unclear}
    yield from in_sdfg(sdfg, dataclasses.replace(inner, containers=left))


def _inside_nested(state: Dataflow, node: Node, sdfg: Sdfg, scope: Scope) -> Scope:
    """What the names of a nested SDFG stand for that come from outside, but its containers."""
    values: dict[str, Typed] = {}
    choices, texts, data = {}, {}, set()
    for name, text in node.mapping.items():
        given, value = scope.typed(text), names.value_in(name, text, scope, sdfg)
        is_kept = given is None or (value and given.dtype in (value.dtype, "int32") and given.value == value.value)
        if is_kept and (found := fact_text(text, scope.texts)) is not None:
            texts[name] = found
        if value is not None:
            values[name] = value
        elif scope.depends_on_data(text):
            data.add(name)
        else:
            choices[name] = conditions.choice(text, scope, next(scope.counter))
    for edge, source, _ in state.reads(node):
        connector = str(edge.dst_connector)
        if source in scope.data:
            data.add(connector)
        elif connector in sdfg.containers:
            values |= {connector: known} if (known := scope.typed(source)) is not None else {}
            texts |= {connector: scope.texts[source]} if source in scope.texts else {}
    inner = dataclasses.replace(scope, symbols={}, types={}, choices=choices, texts=texts, containers={})
    return dataclasses.replace(inner.knowing(values), data=frozenset(data))


def _unread(state: Dataflow, node: Node, scope: Scope) -> Accesses:
    """The accesses of a node of another kind."""
    for edge in state.into[node.id]:
        yield scope.unread(state.source(edge) or "", OTHER, is_write=False)
    for edge in state.out[node.id]:
        yield scope.unread(state.destination(edge) or "", OTHER, is_write=True)
