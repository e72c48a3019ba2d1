"""
Debug checks after the maps of an SDFG (GTSTUB_BUILD_CHECKS=1).

A pass adds a tasklet behind each map that no other map contains. The tasklet tells the runtime what the map has written
(`embedded/map_output.h`). The runtime checks it, because only the runtime knows the checks that are running.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dace
from dace import data, dtypes, nodes, subsets
from dace.sdfg import utils
from dace.symbolic import symstr

from gtstub import install
from gtstub.abi import MAX_RANK
from gtstub.frameworks.dace.internals import type_name
from gtstub.stub.signature.dtypes import NUMBERS


def with_map_checks(sdfg: dace.SDFG) -> dace.SDFG:
    """A copy of an SDFG with expanded library nodes and checks after its maps. It takes the same arguments."""
    checked = copy.deepcopy(sdfg)
    checked.expand_library_nodes()
    variable = f"__gtstub_after_map_{checked.name}"
    for nested in _outside_of_maps(checked):
        for state in nested.states():
            for node in state.nodes():
                if isinstance(node, nodes.MapExit) and state.entry_node(state.entry_node(node)) is None:
                    _check(nested, state, node, variable)
    header = (install.EMBEDDED / "map_output.h").read_text(encoding="utf-8")
    declared = f"DACE_EXPORTED gts_after_map *{variable};\ngts_after_map *{variable} = nullptr;"
    checked.append_global_code(f'{header}\nextern "C" {{\n{declared}\n}}\n', "frame")
    return checked


def _outside_of_maps(sdfg: dace.SDFG) -> Iterator[dace.SDFG]:
    """The SDFG and those nested in it whose code is not part of a map."""
    yield sdfg
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, nodes.NestedSDFG) and state.entry_node(node) is None:
                yield from _outside_of_maps(node.sdfg)


def _check(sdfg: dace.SDFG, state: dace.SDFGState, exit_: nodes.MapExit, variable: str) -> None:
    """
    Adds the tasklet. What follows the map must wait for it, so it stands between an access node of its own for each
    array and the one that the map has written.
    """
    edges = [edge for edge in (_into_array(state, each) for each in state.out_edges(exit_)) if _is_checked(sdfg, edge)]
    if not edges:
        return
    name = json.dumps(_describe(state.entry_node(exit_)))
    outputs = [_initializer(sdfg, edge, name, index) for index, edge in enumerate(edges)]
    tasklet = state.add_tasklet(
        f"after_{exit_.map.label}",
        {f"written_{index}": dace.pointer(sdfg.arrays[edge.dst.data].dtype) for index, edge in enumerate(edges)},
        {},
        f"if ({variable} != nullptr) {{\n"
        f"    const gts_map_output outputs[] = {{{', '.join(outputs)}}};\n"
        f"    for (const gts_map_output &output : outputs)\n"
        f"        {variable}(__state, &output);\n"
        f"}}",
        language=dtypes.Language.CPP,
        side_effects=True,
    )
    for index, edge in enumerate(edges):
        written = state.add_access(edge.dst.data)
        state.remove_edge(edge)
        state.add_edge(edge.src, edge.src_conn, written, None, edge.data)
        state.add_edge(written, None, tasklet, f"written_{index}", copy.deepcopy(edge.data))
        state.add_nedge(tasklet, edge.dst, dace.Memlet())


def _into_array(state: dace.SDFGState, edge: Any) -> Any:
    """The edge into the array that this edge writes through a view; the edge itself if it writes an array."""
    if isinstance(edge.dst, nodes.AccessNode) and isinstance(edge.dst.desc(state.sdfg), data.View):
        of_view = utils.get_view_edge(state, edge.dst)
        if of_view is not None and of_view.src is edge.dst:
            return _into_array(state, of_view)
    return edge


def _is_checked(sdfg: dace.SDFG, edge: Any) -> bool:
    """Whether an edge writes a part of an array that the runtime can look at."""
    if not isinstance(edge.dst, nodes.AccessNode) or edge.data.data != edge.dst.data:
        return False
    array = edge.dst.desc(sdfg)
    on_chip = (dtypes.StorageType.GPU_Shared, dtypes.StorageType.Register)
    return (
        type(array) is data.Array
        and len(array.shape) <= MAX_RANK
        and type_name(array.dtype) in NUMBERS
        and array.storage not in on_chip
        and isinstance(edge.data.subset, subsets.Subset)
    )


def _describe(entry: nodes.MapEntry) -> str:
    """The map, as messages name it, with its line in the source of the model if DaCe knows it."""
    place: dtypes.DebugInfo | None = entry.debuginfo
    if place is None or not place.filename:
        return f"map '{entry.map.label}'"
    return f"map '{entry.map.label}' ({Path(place.filename).name}:{place.start_line})"


def _initializer(sdfg: dace.SDFG, edge: Any, name: str, index: int) -> str:
    """A gts_map_output in C++."""
    array = edge.dst.desc(sdfg)
    written = edge.data.subset
    if not isinstance(written, subsets.Range):
        written = subsets.Range.from_indices(written)
    axes = ", ".join(
        f"{{{_integer(begin)}, {_integer(step)}, {_integer(size)}, {_integer(step * stride)}}}"
        for (begin, _, step), size, stride in zip(written.ranges, written.size(), array.strides, strict=True)
    )
    flags = (index == 0, array.storage is dtypes.StorageType.GPU_Global, not edge.data.dynamic)
    members = (
        name,
        json.dumps(edge.dst.data),
        f"(void *)written_{index}",  # which DaCe declares const where the map need not write all of it
        str(NUMBERS[type_name(array.dtype)]),
        str(len(array.shape)),
        *("true" if flag else "false" for flag in flags),
        f"{{{axes}}}",
    )
    return f"{{{', '.join(members)}}}"


def _integer(expression: Any) -> str:
    return f"static_cast<int64_t>({symstr(expression, cpp_mode=True)})"
