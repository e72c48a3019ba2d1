"""More mutants: global memory in loops, in reverse, transposed, in nested SDFGs, and through views."""

from __future__ import annotations

from typing import Any

import dace
from dace import Memlet
from dace.sdfg.state import LoopRegion

from tests.support.sdfg_mutants import EDGE, K, move, mutant, one_state, sequence


@mutant("1", "3", "error", "j - 1", "j")
@mutant("1", "3", "error", "j - 1:j + 1", "j")
@mutant("1", "3", "info", "j", "j")
@mutant("1", "3", "info", "3", "4")
def a_loop_in_place(read: str, write: str) -> dace.SDFG:
    """What an iteration of a loop writes, the next one reads."""
    sdfg, _ = one_state()
    loop = LoopRegion("repeat", "j < 9", "j", "j = 1", "j = j + 1")
    sdfg.add_node(loop)
    sdfg.add_edge(sdfg.start_block, loop, dace.InterstateEdge())
    state = loop.add_state("body", is_start_block=True)
    tasklet = state.add_tasklet("compute", {"x"}, {"y"}, "y = x" if ":" not in read else "y = x[0]")
    state.add_edge(state.add_access("a"), None, tasklet, "x", Memlet(f"a[{read}]"))
    state.add_edge(tasklet, "y", state.add_access("a"), None, Memlet(f"a[{write}]"))
    return sdfg


@mutant("1", "3", "error", "8:5:-1", "5:10")
@mutant("1", "3", "info", "9:7:-1", "1:5")
def a_copy_in_reverse(source: str, target: str) -> dace.SDFG:
    sdfg, state = one_state()
    memlet = Memlet(data="a", subset=source, other_subset=target)
    state.add_nedge(state.add_access("a"), state.add_access("a"), memlet)
    return sdfg


@mutant("1", "3", "error", f"{K}, {EDGE}", f"{EDGE}, {K}")
@mutant("1", "3", "info", f"{K}, {EDGE}", f"{K}, {EDGE}")
def transposed_over_a_transient(read: str, write: str) -> dace.SDFG:
    sdfg, state = one_state()
    sdfg.add_array("p", [10, 10], dace.float64)
    sdfg.add_array("q", [10, 10], dace.float64, transient=True)
    between = state.add_access("q")
    for label, source, target, nodes in (("first", "p", "q", (None, between)), ("second", "q", "p", (between, None))):
        state.add_mapped_tasklet(
            label,
            {EDGE: "0:10", K: "0:10"},
            {"x": Memlet(f"{source}[{read if source == 'p' else f'{EDGE}, {K}'}]")},
            "y = x",
            {"y": Memlet(f"{target}[{write if target == 'p' else f'{EDGE}, {K}'}]")},
            external_edges=True,
            input_nodes={source: nodes[0] or state.add_access(source)},
            output_nodes={target: nodes[1] or state.add_access(target)},
        )
    return sdfg


@mutant("1", "3", "unknown", "0", K)
@mutant("1", "3", "unknown", f"{K} + r", K)
@mutant("1", "3", "unknown", f"9 - {K}", K)
def not_decidable(read: str, write: str) -> dace.SDFG:
    """What is read of a global passes a transient on its way back."""
    sdfg, state = one_state()
    _, between = move(state, "a", "t", extent="1:8", read=read)
    move(state, "t", "a", extent="1:8", write=write, nodes=(between, None))
    return sdfg


@mutant("1", "3", "info", "a[0:10]", "a[0:10]")
@mutant("1", "3", "unknown", "a[1:9]", "a[0:8]")
def copies_with_one_subset(first: str, second: str) -> dace.SDFG:
    sdfg, state = one_state()
    between = state.add_access("t")
    state.add_nedge(state.add_access("a"), between, Memlet(first))
    state.add_nedge(between, state.add_access("a"), Memlet(second))
    return sdfg


@mutant("1", "3", "info")
def branches_of_a_map_that_do_not_depend_on_each_other() -> dace.SDFG:
    """One of them makes the transient from which the global is written, the other one reads the global."""
    sdfg, state = one_state()
    entry, exit_ = state.add_map("fused", {K: "0:10"})
    one, other = state.add_tasklet("one", {"x"}, {"y"}, "y = x"), state.add_tasklet("other", {"x"}, {"y"}, "y = x")
    between = state.add_access("t")
    state.add_memlet_path(state.add_access("c"), entry, one, dst_conn="x", memlet=Memlet(f"c[{K}]"))
    state.add_memlet_path(one, exit_, between, src_conn="y", memlet=Memlet(f"t[{K}]"))
    state.add_memlet_path(state.add_access("a"), entry, other, dst_conn="x", memlet=Memlet(f"a[{K}]"))
    state.add_memlet_path(other, exit_, state.add_access("d"), src_conn="y", memlet=Memlet(f"d[{K}]"))
    move(state, "t", "a", nodes=(between, None))
    return sdfg


@mutant("1", "3", "error", f"{K} + 1")
@mutant("1", "3", "info", K)
def an_element_of_a_nested_sdfg(read: str) -> dace.SDFG:
    sdfg, state = one_state()
    inner = dace.SDFG("inner")
    for name in ("x", "y"):
        inner.add_scalar(name, dace.float64)
    inside = inner.add_state("inside", is_start_block=True)
    inside.add_nedge(inside.add_access("x"), inside.add_access("y"), Memlet("x[0]"))
    nested = state.add_nested_sdfg(inner, {"x"}, {"y"})
    entry, exit_ = state.add_map("calls", {K: "0:9"})
    state.add_memlet_path(state.add_access("a"), entry, nested, dst_conn="x", memlet=Memlet(f"a[{read}]"))
    state.add_memlet_path(nested, exit_, state.add_access("a"), src_conn="y", memlet=Memlet(f"a[{K}]"))
    return sdfg


# --- Views ------------------------------------------------------------------------------------------------------------


def viewed(state: dace.SDFGState, data: str, *, is_written: bool = False, node: Any = None) -> Any:
    """Adds a view of a whole array, and returns the view's node."""
    name = f"view_{data}"
    if name not in state.sdfg.arrays:
        state.sdfg.add_view(name, [10], dace.float64)
    view, node, memlet = state.add_access(name), node or state.add_access(data), Memlet(f"{data}[0:10]")
    if is_written:
        state.add_edge(view, "views", node, None, memlet)
    else:
        state.add_edge(node, None, view, "views", memlet)
    return view


@mutant("1", "3", "unknown", "a")
@mutant("1", "3", "", "b")
def read_through_a_view(data: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, f"view_{data}", "a", nodes=(viewed(state, data), None))
    return sdfg


@mutant("1", "3", "unknown", "a")
@mutant("1", "3", "", "b")
def written_through_a_view(data: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", f"view_{data}", nodes=(None, viewed(state, data, is_written=True)))
    return sdfg


@mutant("1", "3", "error", False)
@mutant("1", "3", "info", True)
def read_through_a_view_beside_a_write(is_ordered: bool) -> dace.SDFG:
    sdfg, state = one_state()
    _, written = move(state, "c", "a")
    move(state, "view_a", "b", nodes=(viewed(state, "a", node=written if is_ordered else None), None))
    return sdfg


@mutant("5", "6", "error", "t")
@mutant("5", "6", "", "u")
def a_second_write_through_a_view(data: str) -> dace.SDFG:
    sdfg = sequence(("a", "t"))
    state = sdfg.add_state_after(sdfg.start_block, "later")
    move(state, "b", f"view_{data}", nodes=(None, viewed(state, data, is_written=True)))
    return sdfg


@mutant("6", "9", "error", True)
@mutant("6", "9", "", False)
def a_transient_that_is_read_through_a_view(is_ordered: bool) -> dace.SDFG:
    sdfg, state = one_state()
    _, first = move(state, "c", "d")
    node = state.add_access("t")
    move(state, "view_t", "b", nodes=(viewed(state, "t", node=node), None))
    if is_ordered:
        state.add_nedge(first, node, Memlet())
    return sdfg


# --- Memory from outside of a map -------------------------------------------------------------------------------------


@mutant("", "10", "", "a")
@mutant("", "10", "", "view_a")
@mutant("", "10", "error", "t")
def memory_on_the_heap_in_a_map(data: str) -> dace.SDFG:
    sdfg, state = one_state()
    sdfg.add_view("view_a", [10], dace.float64)
    sdfg.arrays[data].storage = dace.StorageType.CPU_Heap
    entry, exit_ = state.add_map("outer", {K: "0:10"})
    node, tasklet = state.add_access(data), state.add_tasklet("compute", {"x"}, {"y"}, "y = x")
    if data == "view_a":
        entry.add_in_connector("IN_a")
        entry.add_out_connector("OUT_a")
        state.add_edge(state.add_access("a"), None, entry, "IN_a", Memlet("a[0:10]"))
        state.add_edge(entry, "OUT_a", node, "views", Memlet("a[0:10]"))
    else:
        state.add_nedge(entry, node, Memlet())
    state.add_edge(node, None, tasklet, "x", Memlet(f"{data}[{K}]"))
    state.add_memlet_path(tasklet, exit_, state.add_access("b"), src_conn="y", memlet=Memlet(f"b[{K}]"))
    return sdfg
