"""
gt4py's rules for SDFGs once more, with DaCe and networkx: what `gtstub.tools.rules` must agree with.

It follows DaCe's objects (memlet paths, scopes, sympy's expressions) where the rules read texts. Where the texts do not
say enough, the two may differ: neither is asked what the other cannot know.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import dace
import networkx as nx
from dace.sdfg import nodes
from dace.sdfg.state import AbstractControlFlowRegion, ConditionalBlock, LoopRegion
from dace.symbolic import pystr_to_symbolic
from dace.transformation.pass_pipeline import Pass  # noqa: F401  imported first, because DaCe's modules import in circles


class Found(NamedTuple):
    """A finding without its text; `state` is the label of the innermost state."""

    rule: str
    adr: str
    level: str
    state: str
    data: str


def broken_rules(sdfg: dace.SDFG, before: dace.SDFG | None = None) -> set[Found]:
    """All findings except those that need the signature of the program."""
    found = set(_global_memory(sdfg))
    for each in sdfg.all_sdfgs_recursive():
        found |= {
            *_states(each),
            *_single_assignment(each),
            *_map_memory(each, _is_in_map(each)),
            *_maps(each, _is_in_map(each)),
        }
    if before is not None:
        found |= set(_changes(sdfg, before))
    return found


# --- Accesses ---------------------------------------------------------------------------------------------------------


def _is_in_map(sdfg: dace.SDFG) -> bool:
    while sdfg.parent_nsdfg_node is not None:
        if sdfg.parent.entry_node(sdfg.parent_nsdfg_node) is not None:
            return True
        sdfg = sdfg.parent.sdfg
    return False


def _written(state: dace.SDFGState, node: nodes.AccessNode) -> list[Any]:
    return [edge for edge in state.in_edges(node) if not edge.data.is_empty() and edge.dst_conn != "views"]


def _read(state: dace.SDFGState, node: nodes.AccessNode) -> list[Any]:
    return [edge for edge in state.out_edges(node) if not edge.data.is_empty() and edge.src_conn != "views"]


def _is_view_edge(edge: Any) -> bool:
    return "views" in (edge.src_conn, edge.dst_conn)


def _level(sdfg: dace.SDFG, data: str) -> str:
    return "advice" if isinstance(sdfg.arrays[data], dace.data.Scalar) else "error"


def _blocks(region: AbstractControlFlowRegion) -> Iterator[dace.SDFGState]:
    return (block for block in region.all_states())


# --- 1 ----------------------------------------------------------------------------------------------------------------

_ORDER = ("error", "unknown", "info")


def _global_memory(sdfg: dace.SDFG) -> Iterator[Found]:
    states = list(_blocks(sdfg))
    for data, descriptor in sdfg.arrays.items():
        if descriptor.transient or isinstance(descriptor, dace.data.Scalar):
            continue
        accesses = [(state, node) for state in states for node in state.data_nodes() if node.data == data]
        if not any(_read(*each) for each in accesses) or not any(_written(*each) for each in accesses):
            continue
        levels = {state: _level_in_state(state, data) for state in states}
        serious = [(state, level) for state, level in levels.items() if level in ("error", "unknown")]
        both = [state for state, level in levels.items() if level is not None]
        if not serious and (shifted := _shifted_over_transients(sdfg, data)) is not None:
            level, state = shifted
            yield Found("1", "3", level, state.label, data)
            continue
        for state, level in serious:
            for one in level.split():
                yield Found("1", "3", one, state.label, data)
        if not serious:
            yield Found("1", "3", "info", both[0].label if both else "", data)


def _level_in_state(state: dace.SDFGState, data: str) -> str | None:
    found = [node for node in state.data_nodes() if node.data == data]
    reads = [edge for node in found for edge in _read(state, node)]
    writes = [edge for node in found for edge in _written(state, node)]
    if not reads or not writes:
        return None
    levels = {_level_of_pair(state, *pair) for pair in itertools.product(reads, writes)}
    return " ".join(level for level in ("error", "unknown") if level in levels) or "info"


def _level_of_pair(state: dace.SDFGState, read: Any, write: Any) -> str:
    if read is write:
        source, target = read.data.src_subset, read.data.dst_subset
        return "info" if source == target or _are_apart(source, target, _loop_variables(state)) else "error"
    reader, writer = _outermost(state, read.dst), _outermost(state, write.src)
    if reader is writer and isinstance(reader, nodes.AccessNode):
        return "info"
    if reader is not writer:
        graph = nx.DiGraph()
        graph.add_nodes_from(_outermost(state, node) for node in state.nodes())
        graph.add_edges_from(
            (source, target)
            for source, target in ((_outermost(state, e.src), _outermost(state, e.dst)) for e in state.edges())
            if source is not target
        )
        if nx.has_path(graph, reader, writer) or nx.has_path(graph, writer, reader):
            return "info"
        return "info" if _are_apart(read.data.src_subset, write.data.dst_subset, set()) else "error"
    levels = {
        _level_in_map(state, inner, outer)
        for inner in _leaves(state.memlet_tree(read))
        for outer in _leaves(state.memlet_tree(write))
    }
    return min(levels, key=_ORDER.index)


def _outermost(state: dace.SDFGState, node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.ExitNode):
        node = state.entry_node(node)
    while (entry := state.entry_node(node)) is not None:
        node = entry
    return node


def _leaves(tree: Any) -> Iterator[Any]:
    return (each.edge for each in tree.traverse_children(include_self=True) if not each.children)


def _level_in_map(state: dace.SDFGState, read: Any, write: Any) -> str:
    source, target = read.data.src_subset, write.data.dst_subset
    variables: set[str] = set()
    needed: set[str] = set()
    entry = state.entry_node(write.src)
    while entry is not None:
        variables |= set(entry.map.params)
        needed |= {name for name, (b, e, _) in zip(entry.map.params, entry.map.range, strict=True) if b != e}
        entry = state.entry_node(entry)
    if _are_apart(source, target, variables | _loop_variables(state)):
        return "info"
    if source == target and _is_point(source):
        if not needed <= {str(symbol) for symbol in target.free_symbols}:
            return "error"
        is_ordered = read.dst is write.src or nx.has_path(state.nx, read.dst, write.src)
        return "info" if is_ordered else "error"
    if _is_point(source) and _is_point(target):
        return "error"
    if any(isinstance(node, nodes.NestedSDFG | nodes.LibraryNode) for node in (read.dst, write.src)):
        return "unknown"
    return "error"


def _is_point(subset: Any) -> bool:
    return subset is not None and all(first == last for first, last, _ in subset.ranges)


def _loop_variables(state: dace.SDFGState) -> set[str]:
    return {region.loop_variable for region in state.sdfg.all_control_flow_regions() if isinstance(region, LoopRegion)}


Shifts = dict[int, tuple[int, Any]]
"""For axes that are written, the axis that is read, and how much further on."""


def _shifted_over_transients(sdfg: dace.SDFG, data: str) -> tuple[str, dace.SDFGState] | None:
    """Whether a global is written at other indices than those at which it was read for this: a level and the state."""
    steps: dict[str, list[tuple[str, dace.SDFGState, Shifts]]] = {}
    for state in _blocks(sdfg):
        for source, target, axes in _flows(state):
            steps.setdefault(source, []).append((target, state, axes))
    todo: list[tuple[str, Shifts | None]] = [(data, None)]
    seen = set()
    unknown = None
    while todo:
        at, so_far = todo.pop()
        for target, state, axes in steps.get(at, ()):
            if target == at or (target != data and not sdfg.arrays[target].transient):
                continue
            sums = axes
            if so_far is not None:
                sums = {
                    axis: (so_far[source][0], dace.symbolic.simplify(shift + so_far[source][1]))
                    for axis, (source, shift) in axes.items()
                    if source in so_far
                }
            if target == data:
                if any(source != axis or (each.is_number and each != 0) for axis, (source, each) in sums.items()):
                    return "error", state
                if len(sums) < len(sdfg.arrays[data].shape) or any(each != 0 for _, each in sums.values()):
                    unknown = unknown or state
            elif (key := (target, str(sorted(sums.items())))) not in seen:
                seen.add(key)
                todo.append((target, sums))
    return None if unknown is None else ("unknown", unknown)


def _flows(state: dace.SDFGState) -> Iterator[tuple[str, str, Shifts]]:
    """Of each map and copy: an array that is read, one that is written, and for axes of the latter axis and shift."""
    outer = [node for node in state.data_nodes() if state.entry_node(node) is None]
    reads = [(node.data, edge) for node in outer for edge in state.out_edges(node) if not edge.data.is_empty()]
    writes = [(node.data, edge) for node in outer for edge in state.in_edges(node) if not edge.data.is_empty()]
    for (source, read), (target, write) in itertools.product(reads, writes):
        if read is write:
            yield source, target, _copied(read)
        place = _outermost(state, read.dst)
        if place is not _outermost(state, write.src) or isinstance(place, nodes.AccessNode):
            continue
        for inner, last in itertools.product(_leaves(state.memlet_tree(read)), _leaves(state.memlet_tree(write))):
            if inner.dst is last.src or nx.has_path(state.nx, inner.dst, last.src):
                yield source, target, _aligned(state, inner, last)


def _copied(edge: Any) -> Shifts:
    """If one of the two subsets is left out, it is the other one, or begins at 0."""
    source, target = edge.data.src_subset, edge.data.dst_subset
    is_implied = source is None or target is None
    source, target = source or target, target or source
    if _is_view_edge(edge) or source is None or source.dims() != target.dims():
        return {}
    return {
        axis: (axis, first - into)
        for axis, ((first, _, step), (into, _, other_step)) in enumerate(zip(source.ranges, target.ranges, strict=True))
        if step == other_step and not (is_implied and first != 0)
    }


def _aligned(state: dace.SDFGState, read: Any, write: Any) -> Shifts:
    variables = set()
    entry = state.entry_node(write.src)
    while entry is not None:
        variables |= set(entry.map.params)
        entry = state.entry_node(entry)

    def parts(subset: Any) -> dict[int, tuple[str, Any]]:
        found = {}
        for axis, (first, last, _) in enumerate(subset.ranges if subset is not None else ()):
            used = [symbol for symbol in _symbols(first) if str(symbol) in variables]
            expression = pystr_to_symbolic(str(first))
            if first == last and len(used) == 1 and not (expression - used[0]).has(used[0]):
                found[axis] = str(used[0]), expression - used[0]
        return found

    source = {variable: (axis, rest) for axis, (variable, rest) in parts(read.data.src_subset).items()}
    return {
        axis: (source[variable][0], source[variable][1] - rest)
        for axis, (variable, rest) in parts(write.data.dst_subset).items()
        if variable in source
    }


def _are_apart(one: Any, other: Any, variables: set[str]) -> bool:
    if one is None or other is None or one.dims() != other.dims():
        return False
    for (first, last, step), (other_first, other_last, other_step) in zip(one.ranges, other.ranges, strict=True):
        if step.is_negative:
            first, last = last, first
        if other_step.is_negative:
            other_first, other_last = other_last, other_first
        names = {str(name) for end in (first, last, other_first, other_last) for name in _symbols(end)}
        if names & variables:
            continue
        gaps = (other_first - last, first - other_last)
        if any((gap := dace.symbolic.simplify(each)).is_number and gap > 0 for each in gaps):
            return True
    return False


def _symbols(expression: Any) -> set[Any]:
    return set(pystr_to_symbolic(str(expression)).free_symbols)


# --- 3 and 4 ----------------------------------------------------------------------------------------------------------


def _states(sdfg: dace.SDFG) -> Iterator[Found]:
    arrays = {name for name, descriptor in sdfg.arrays.items() if not isinstance(descriptor, dace.data.Scalar)}
    for region in sdfg.all_control_flow_regions():
        if isinstance(region, ConditionalBlock):
            continue
        used: set[str] = set()
        for edge in region.edges():
            used |= {str(name) for name in edge.data.free_symbols} | _names(*edge.data.assignments.values())
        for block in region.nodes():
            if isinstance(block, ConditionalBlock):
                used |= _names(*(code.as_string for code, _ in block.branches if code is not None))
        if isinstance(region, LoopRegion):
            codes = (region.init_statement, region.loop_condition, region.update_statement)
            used |= _names(*(code.as_string for code in codes if code is not None))
        label = "" if region is sdfg else region.label
        yield from (Found("3", "4", "error", label, name) for name in used & arrays)

        graph = nx.DiGraph((edge.src, edge.dst) for edge in region.edges())
        if not nx.is_directed_acyclic_graph(graph):
            cycles = {block for block in graph if graph.has_edge(block, block)}
            cycles |= {b for part in nx.strongly_connected_components(graph) if len(part) > 1 for b in part}
            first = next(block for block in region.nodes() if block in cycles)
            yield Found("4", "5", "error", first.label, "")


def _names(*texts: str) -> set[str]:
    return {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", str(text))}


# --- 5 to 8 -----------------------------------------------------------------------------------------------------------


def _single_assignment(sdfg: dace.SDFG) -> Iterator[Found]:
    writers = [
        (state, data)
        for state in _blocks(sdfg)
        for data in {node.data for node in state.data_nodes() if _written(state, node)}
        if sdfg.arrays[data].transient
    ]
    for (first, data), (second, other) in itertools.permutations(writers, 2):
        if data == other and _follows(first, second):
            yield Found("5", "6", _level(sdfg, data), second.label, data)
    for state in _blocks(sdfg):
        for data in {node.data for node in state.data_nodes()}:
            found = [node for node in state.data_nodes() if node.data == data]
            for node in found:
                if len(_written(state, node)) > 1:
                    level = "advice" if sdfg.arrays[data].transient else "info"
                    yield Found("7", "7", level, state.label, data)
            if not sdfg.arrays[data].transient:
                continue
            if len(found) > 1:
                yield Found("8", "8", _level(sdfg, data), state.label, data)
            if not any(_written(state, node) for node in found) and any(
                _read(state, node)
                and state.in_degree(node)
                and not any(edge.dst_conn == "views" for edge in state.in_edges(node))
                for node in found
            ):
                yield Found("6", "9", "error", state.label, data)


def _follows(first: dace.SDFGState, second: dace.SDFGState) -> bool:
    """Whether a state is executed after another one: in the innermost region that has both, over their blocks there."""
    ancestors = {}
    block: Any = first
    while block is not None and not isinstance(block, dace.SDFG):
        ancestors[block.parent_graph] = block
        block = block.parent_graph
    block = second
    while block.parent_graph not in ancestors:
        block = block.parent_graph
    region = block.parent_graph
    if isinstance(region, ConditionalBlock):
        return False
    return ancestors[region] is not block and bool(nx.has_path(region.nx, ancestors[region], block))


# --- Maps -------------------------------------------------------------------------------------------------------------


def _map_memory(sdfg: dace.SDFG, is_in_map: bool) -> Iterator[Found]:
    for state in _blocks(sdfg):
        for node in state.data_nodes():
            descriptor = sdfg.arrays[node.data]
            if not descriptor.transient or isinstance(descriptor, dace.data.View):
                continue
            if not is_in_map and state.entry_node(node) is None:
                continue
            storages = (dace.StorageType.Default, dace.StorageType.Register)
            if descriptor.lifetime != dace.AllocationLifetime.Scope or descriptor.storage not in storages:
                yield Found("", "10", "error", state.label, node.data)


_SPELLED = re.compile(r"i_(.+?)_{1,2}gtx_(horizontal|vertical|localdim)$")


def _entries(sdfg: dace.SDFG) -> Iterator[tuple[dace.SDFGState, nodes.MapEntry]]:
    for state in _blocks(sdfg):
        yield from ((state, node) for node in state.nodes() if isinstance(node, nodes.MapEntry))


def _maps(sdfg: dace.SDFG, is_in_map: bool) -> Iterator[Found]:
    kinds: dict[str, dict[str, str]] = {}
    reported: set[str] = set()
    for state, entry in _entries(sdfg):
        for name in entry.map.params:
            if (match := _SPELLED.search(name)) is not None:
                kinds.setdefault(match[1], {}).setdefault(match[2], name)
            elif name not in reported:
                reported.add(name)
                yield Found("9", "11", "advice" if is_in_map else "error", state.label, name)
    for of_dimension in kinds.values():
        if len(of_dimension) > 1:
            yield Found("9", "11", "error", "*", "")
    for state in _blocks(sdfg):
        ranges: dict[Any, int] = {}
        for node in state.nodes():
            if isinstance(node, nodes.MapEntry):
                key = state.entry_node(node), frozenset(zip(node.map.params, map(str, node.map.range), strict=True))
                ranges[key] = ranges.get(key, 0) + 1
        yield from (Found("10", "12", "info", state.label, "*") for count in ranges.values() if count > 1)


# --- 2 and 11 ---------------------------------------------------------------------------------------------------------


def _changes(sdfg: dace.SDFG, before: dace.SDFG) -> Iterator[Found]:
    def states(whole: dace.SDFG) -> int:
        metrics = {block for block in whole.nodes() if block.label in ("metrics_entry", "metrics_exit")}
        return sum(1 for state in whole.states() if state not in metrics and not metrics & set(_ancestors(state)))

    def variables(whole: dace.SDFG) -> set[str]:
        return {
            name
            for each in whole.all_sdfgs_recursive()
            if not _is_in_map(each)
            for _, entry in _entries(each)
            for name in entry.map.params
        }

    if states(sdfg) != states(before):
        yield Found("2", "1", "error", "", "")
    now, then = variables(sdfg), variables(before)
    level = "error" if all(_SPELLED.search(name) for name in then - now) else "unknown"
    yield from (Found("11", "11.5", level, "", name) for name in now - then if not name.startswith("__gtx_coarse_"))
    yield from (Found("11", "12", "unknown", "", name) for name in then - now)


def _ancestors(block: Any) -> Iterator[Any]:
    while not isinstance(block, dace.SDFG):
        yield block
        block = block.parent_graph
