"""SDFGs made with DaCe's API: for each rule of gt4py some that break it, and some that nearly do and are legal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import dace
from dace import Memlet
from dace.properties import CodeBlock
from dace.sdfg.state import ConditionalBlock, ControlFlowRegion, LoopRegion

K, EDGE = "i_K_gtx_vertical", "i_Edge_gtx_horizontal"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """
    An SDFG, and the level of the worst finding of `rule` that it must have; empty if it is legal. `make` returns the
    SDFG before it, too, if it takes one.
    """

    name: str
    rule: str
    adr: str
    level: str
    make: Callable[[], dace.SDFG | tuple[dace.SDFG, dace.SDFG]]


MUTANTS: list[Mutant] = []


def mutant(rule: str, adr: str, level: str, *arguments: Any) -> Callable[[Any], Any]:
    """Lists a function that makes an SDFG, called with these arguments."""

    def decorate(make: Any) -> Any:
        name = "_".join([make.__name__, *(str(argument).replace(" ", "") for argument in arguments)])
        MUTANTS.append(Mutant(name, rule, adr, level, lambda: make(*arguments)))
        return make

    return decorate


# --- Parts ------------------------------------------------------------------------------------------------------------


def empty() -> dace.SDFG:
    """Two inputs, two outputs, two transients, two scalars, and no state."""
    sdfg = dace.SDFG("mutant")
    for name in ("a", "b", "c", "d"):
        sdfg.add_array(name, [10], dace.float64)
    for name in ("t", "u"):
        sdfg.add_array(name, [10], dace.float64, transient=True)
    for name in ("s", "flag"):
        sdfg.add_scalar(name, dace.float64, transient=True)
    return sdfg


def one_state() -> tuple[dace.SDFG, dace.SDFGState]:
    sdfg = empty()
    return sdfg, sdfg.add_state("only", is_start_block=True)


def move(
    state: dace.SDFGState,
    source: str,
    target: str,
    *,
    variable: str = K,
    extent: str = "0:10",
    read: str = "",
    write: str = "",
    nodes: Sequence[Any] = (None, None),
) -> tuple[Any, Any]:
    """Adds a map from an array to another, and returns their access nodes, which `nodes` may name."""
    read, write = read or variable, write or variable
    source_node = nodes[0] or state.add_access(source)
    target_node = nodes[1] or state.add_access(target)
    state.add_mapped_tasklet(
        f"move_{source}_{target}",
        {variable: extent},
        {"x": Memlet(f"{source}[{read}]")},
        "y = x",
        {"y": Memlet(f"{target}[{write}]")},
        external_edges=True,
        input_nodes={source: source_node},
        output_nodes={target: target_node},
    )
    return source_node, target_node


def sequence(*moves: tuple[str, str], region: Any = None) -> dace.SDFG:
    """A state for each pair of arrays, one after the other."""
    sdfg = empty()
    last = None
    for number, (source, target) in enumerate(moves):
        state = sdfg.add_state(f"state_{number}", is_start_block=last is None)
        move(state, source, target)
        if last is not None:
            sdfg.add_edge(last, state, dace.InterstateEdge())
        last = state
    return sdfg


def branching(sdfg: dace.SDFG, first: tuple[str, str], second: tuple[str, str], condition: str) -> ConditionalBlock:
    block = ConditionalBlock("choice")
    sdfg.add_node(block, ensure_unique_name=True)
    for label, pair, code in (("yes", first, CodeBlock(condition)), ("no", second, None)):
        region = ControlFlowRegion(f"{label}_region", sdfg=sdfg)
        move(region.add_state(label, is_start_block=True), *pair)
        block.add_branch(code, region)
    return block


# --- 1: global memory -------------------------------------------------------------------------------------------------


@mutant("1", "3", "error", f"{K} + 1", K)
@mutant("1", "3", "error", K, f"9 - {K}")
@mutant("1", "3", "error", "3", "3")
@mutant("1", "3", "info", K, K)
@mutant("1", "3", "info", "0", "7")
def in_place(read: str, write: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", "a", extent="0:9", read=read, write=write)
    return sdfg


@mutant("1", "3", "error", "1:10", "0:9")
@mutant("1", "3", "info", "0:5", "5:10")
@mutant("1", "3", "info", "0:10", "0:10")
def copy_within(source: str, target: str) -> dace.SDFG:
    sdfg, state = one_state()
    memlet = Memlet(data="a", subset=source, other_subset=target)
    state.add_nedge(state.add_access("a"), state.add_access("a"), memlet)
    return sdfg


@mutant("1", "3", "error", "0:10", "0:10")
@mutant("1", "3", "error", "0:6", "5:10")
@mutant("1", "3", "info", "0:5", "5:10")
def two_maps_without_an_order(read: str, write: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", "b", extent=read)
    move(state, "c", "a", extent=write)
    return sdfg


@mutant("1", "3", "error", False)
@mutant("1", "3", "info", True)
def a_second_reader_of_what_is_written(comes_first: bool) -> dace.SDFG:
    """One map reads a global for a transient that is written back. Another one reads it, before or at any time."""
    sdfg, state = one_state()
    read, between = move(state, "a", "t")
    _, output = move(state, "a", "u", nodes=(read, None))
    written = state.add_access("a")
    if not comes_first:
        move(state, "t", "a", nodes=(between, written))
        return sdfg
    state.add_mapped_tasklet(
        "join",
        {K: "0:10"},
        {"x": Memlet(f"t[{K}]"), "y": Memlet(f"u[{K}]")},
        "z = x + y",
        {"z": Memlet(f"a[{K}]")},
        external_edges=True,
        input_nodes={"t": between, "u": output},
        output_nodes={"a": written},
    )
    return sdfg


@mutant("1", "3", "info")
def written_and_read_back() -> dace.SDFG:
    sdfg, state = one_state()
    _, written = move(state, "b", "a")
    move(state, "a", "c", read=K, nodes=(written, None))
    return sdfg


@mutant("1", "3", "info")
def read_in_one_state_and_written_in_the_next() -> dace.SDFG:
    return sequence(("a", "t"), ("t", "a"))


@mutant("1", "3", "error", "t", f"{K} + 1", K, K, K)
@mutant("1", "3", "error", "t", f"{K} + r", K, K, f"{K} + r + 1")
@mutant("1", "3", "info", "t", K, K, K, K)
@mutant("1", "3", "info", "t", f"{K} + 1", K, K, f"{K} + 1")
@mutant("1", "3", "info", "t", f"{K} - r", f"{K} - h", f"{K} - h", f"{K} - r")
def a_detour(over: str, *indices: str) -> dace.SDFG:
    """What is read of a global passes a transient on its way back. The indices: read, written, read, written."""
    sdfg, state = one_state()
    _, between = move(state, "a", over, extent="1:8", read=indices[0], write=indices[1])
    move(state, over, "a", extent="1:8", read=indices[2], write=indices[3], nodes=(between, None))
    return sdfg


@mutant("1", "3", "error", f"{K} + 1")
@mutant("1", "3", "info", K)
def a_detour_through_two_states(read: str) -> dace.SDFG:
    sdfg = empty()
    first = sdfg.add_state("first", is_start_block=True)
    second = sdfg.add_state_after(first, "second")
    move(first, "a", "t", extent="0:9", read=read)
    move(second, "t", "u", extent="0:9")
    third = sdfg.add_state_after(second, "third")
    move(third, "u", "a", extent="0:9")
    return sdfg


@mutant("1", "3", "error", "1:10", "0:9")
@mutant("1", "3", "info", "0:9", "0:9")
def a_detour_of_copies(source: str, target: str) -> dace.SDFG:
    """A[0:9] = A[1:10], as ADR-18 forbids it, through a buffer."""
    sdfg, state = one_state()
    between = state.add_access("t")
    state.add_nedge(state.add_access("a"), between, Memlet(data="a", subset=source, other_subset="0:9"))
    state.add_nedge(between, state.add_access("a"), Memlet(data="t", subset="0:9", other_subset=target))
    return sdfg


@mutant("1", "3", "error", False)
@mutant("1", "3", "info", True)
def a_fused_map_with_two_branches(is_buffered: bool) -> dace.SDFG:
    """As a map of extrapolate_temporally_exner_pressure before its local double buffering (PR 2815 of gt4py)."""
    sdfg, state = one_state()
    entry, exit_ = state.add_map("fused", {K: "0:10"})
    one, other = state.add_tasklet("one", {"x"}, {"y"}, "y = x"), state.add_tasklet("other", {"x"}, {"y"}, "y = 2 * x")
    source: Any = entry
    if is_buffered:
        sdfg.add_scalar("buffer", dace.float64, transient=True)
        source = state.add_access("buffer")
        state.add_memlet_path(state.add_access("a"), entry, source, memlet=Memlet(f"a[{K}]"))
        state.add_edge(source, None, one, "x", Memlet("buffer[0]"))
        state.add_edge(source, None, other, "x", Memlet("buffer[0]"))
    else:
        read = state.add_access("a")
        for tasklet in (one, other):
            state.add_memlet_path(read, entry, tasklet, dst_conn="x", memlet=Memlet(f"a[{K}]"))
    state.add_memlet_path(one, exit_, state.add_access("a"), src_conn="y", memlet=Memlet(f"a[{K}]"))
    state.add_memlet_path(other, exit_, state.add_access("b"), src_conn="y", memlet=Memlet(f"b[{K}]"))
    return sdfg


@mutant("1", "3", "unknown", "0:10")
@mutant("1", "3", "info", K)
def a_nested_sdfg(subset: str) -> dace.SDFG:
    sdfg, state = one_state()
    inner = dace.SDFG("inner")
    inner.add_array("x", [10], dace.float64)
    inner.add_array("y", [10], dace.float64)
    inner_state = inner.add_state("inside", is_start_block=True)
    inner_state.add_nedge(inner_state.add_access("x"), inner_state.add_access("y"), Memlet("x[0]"))
    nested = state.add_nested_sdfg(inner, {"x"}, {"y"})
    entry, exit_ = state.add_map("calls", {K: "0:10"})
    state.add_memlet_path(state.add_access("a"), entry, nested, dst_conn="x", memlet=Memlet(f"a[{subset}]"))
    state.add_memlet_path(nested, exit_, state.add_access("a"), src_conn="y", memlet=Memlet(f"a[{subset}]"))
    return sdfg


# --- 2 to 4: states ---------------------------------------------------------------------------------------------------


@mutant("2", "1", "error", ("a", "t"), ("t", "b"), ("a", "c"))
@mutant("2", "1", "error", ("a", "b"))
@mutant("2", "1", "", ("c", "u"), ("u", "b"))
def other_states(*moves: tuple[str, str]) -> tuple[dace.SDFG, dace.SDFG]:
    return sequence(*moves), sequence(("a", "t"), ("t", "b"))


@mutant("2", "1", "")
def states_inside_of_a_map() -> tuple[dace.SDFG, dace.SDFG]:
    """The nested SDFG of the second one has fewer states."""

    def nesting(states: int) -> dace.SDFG:
        sdfg, state = one_state()
        inner = dace.SDFG("inner")
        inner.add_state("first", is_start_block=True)
        for _ in range(states - 1):
            inner.add_state_after(inner.sink_nodes()[0], "more")
        entry, exit_ = state.add_map("calls", {K: "0:10"})
        nested = state.add_nested_sdfg(inner, set(), set())
        state.add_nedge(entry, nested, Memlet())
        state.add_nedge(nested, exit_, Memlet())
        return sdfg

    return nesting(1), nesting(3)


@mutant("3", "4", "error", "t[0] > 0")
@mutant("3", "4", "error", "one > 0")
@mutant("3", "4", "", "s > 0")
@mutant("3", "4", "", "tt > 0")
def a_condition(code: str) -> dace.SDFG:
    sdfg = sequence(("a", "t"), ("t", "b"))
    sdfg.add_array("one", [1], dace.float64, transient=True)
    (edge,) = sdfg.edges()
    edge.data.condition = CodeBlock(code)
    return sdfg


@mutant("3", "4", "error", "a[3]")
@mutant("3", "4", "", "s + 1")
def an_assignment(value: str) -> dace.SDFG:
    sdfg = sequence(("a", "t"), ("t", "b"))
    (edge,) = sdfg.edges()
    edge.data.assignments = {"n": value}
    return sdfg


@mutant("3", "4", "error", "t[0]")
@mutant("3", "4", "", "flag")
def a_branch(condition: str) -> dace.SDFG:
    sdfg = empty()
    branching(sdfg, ("a", "b"), ("c", "b"), condition)
    return sdfg


@mutant("3", "4", "error", "i < u[0]")
@mutant("3", "4", "", "i < 7")
def a_loop(condition: str) -> dace.SDFG:
    sdfg = empty()
    loop = LoopRegion("repeat", condition, "i", "i = 0", "i = i + 1")
    sdfg.add_node(loop, is_start_block=True)
    move(loop.add_state("body", is_start_block=True), "a", "b")
    return sdfg


@mutant("4", "5", "error", (2, 1))
@mutant("4", "5", "error", (2, 2))
@mutant("4", "5", "", (0, 2))
def another_edge(edge: tuple[int, int]) -> dace.SDFG:
    sdfg = sequence(("a", "t"), ("t", "b"), ("b", "c"))
    states = sdfg.nodes()
    sdfg.add_edge(states[edge[0]], states[edge[1]], dace.InterstateEdge(condition="s > 0"))
    return sdfg


@mutant("4", "5", "")
def a_loop_region() -> dace.SDFG:
    return a_loop("i < 7")


# --- 5 to 8: transients -----------------------------------------------------------------------------------------------


@mutant("5", "6", "error", ("a", "t"), ("b", "t"))
@mutant("5", "6", "error", ("a", "t"), ("t", "b"), ("c", "t"))
@mutant("5", "6", "advice", ("a", "s"), ("b", "s"))
@mutant("5", "6", "", ("a", "t"), ("b", "u"))
@mutant("5", "6", "", ("a", "d"), ("b", "d"))
@mutant("5", "6", "", ("t", "b"), ("t", "c"))
def states_that_write(*moves: tuple[str, str]) -> dace.SDFG:
    return sequence(*moves)


@mutant("5", "6", "")
def branches_that_write() -> dace.SDFG:
    sdfg = empty()
    branching(sdfg, ("a", "t"), ("b", "t"), "flag")
    return sdfg


@mutant("5", "6", "error")
def a_state_that_writes_what_a_branch_has_written() -> dace.SDFG:
    sdfg = empty()
    block = branching(sdfg, ("a", "t"), ("b", "u"), "flag")
    after = sdfg.add_state("after")
    move(after, "c", "t")
    sdfg.add_edge(block, after, dace.InterstateEdge())
    return sdfg


@mutant("5", "6", "")
def a_loop_that_writes() -> dace.SDFG:
    sdfg = empty()
    loop = LoopRegion("repeat", "i < 7", "i", "i = 0", "i = i + 1")
    sdfg.add_node(loop, is_start_block=True)
    move(loop.add_state("body", is_start_block=True), "a", "t")
    return sdfg


@mutant("6", "9", "error", "late", "t")
@mutant("6", "9", "", "", "t")
@mutant("6", "9", "", "late", "a")
def a_read(order: str, data: str) -> dace.SDFG:
    """A state that reads an array which it does not write, ordered after something else or not."""
    sdfg, state = one_state()
    _, first = move(state, "c", "d")
    read, _ = move(state, data, "b")
    if order:
        state.add_nedge(first, read, Memlet())
    return sdfg


@mutant("6", "9", "")
def a_read_of_what_was_written() -> dace.SDFG:
    sdfg, state = one_state()
    _, written = move(state, "a", "t")
    move(state, "t", "b", nodes=(written, None))
    return sdfg


@mutant("7", "7", "advice", "t", True)
@mutant("7", "7", "info", "b", True)
@mutant("7", "7", "", "t", False)
def two_halves(target: str, in_one_node: bool) -> dace.SDFG:
    sdfg, state = one_state()
    _, node = move(state, "a", target, extent="0:5")
    other = (None, node) if in_one_node else (None, None)
    move(state, "c", target if in_one_node else "u", extent="5:10", nodes=other)
    return sdfg


@mutant("8", "8", "error", "t", "t")
@mutant("8", "8", "advice", "s", "s")
@mutant("8", "8", "", "t", "u")
@mutant("8", "8", "", "b", "b")
def two_targets(first: str, second: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", first, write="0" if first == "s" else K, extent="0:5")
    move(state, "c", second, write="0" if second == "s" else K, extent="5:10")
    return sdfg


@mutant("", "10", "error", dace.AllocationLifetime.Persistent, dace.StorageType.Default, True)
@mutant("", "10", "error", dace.AllocationLifetime.Scope, dace.StorageType.CPU_Heap, True)
@mutant("", "10", "", dace.AllocationLifetime.Scope, dace.StorageType.Register, True)
@mutant("", "10", "", dace.AllocationLifetime.Scope, dace.StorageType.Default, True)
@mutant("", "10", "", dace.AllocationLifetime.Persistent, dace.StorageType.CPU_Heap, False)
def memory(lifetime: Any, storage: Any, is_inside: bool) -> dace.SDFG:
    sdfg, state = one_state()
    sdfg.arrays["t"].lifetime, sdfg.arrays["t"].storage = lifetime, storage
    if not is_inside:
        move(state, "a", "t")
        return sdfg
    entry, exit_ = state.add_map("outer", {K: "0:10"})
    between = state.add_access("t")
    state.add_memlet_path(state.add_access("a"), entry, between, memlet=Memlet(f"a[{K}]"))
    state.add_memlet_path(between, exit_, state.add_access("b"), memlet=Memlet("t[0]", other_subset=K))
    return sdfg


@mutant("", "10", "error", dace.AllocationLifetime.Persistent)
@mutant("", "10", "", dace.AllocationLifetime.Scope)
def memory_of_a_nested_sdfg_in_a_map(lifetime: Any) -> dace.SDFG:
    sdfg, state = one_state()
    inner = dace.SDFG("inner")
    inner.add_array("x", [1], dace.float64)
    inner.add_array("kept", [1], dace.float64, transient=True, lifetime=lifetime)
    inner_state = inner.add_state("inside", is_start_block=True)
    inner_state.add_nedge(inner_state.add_access("x"), inner_state.add_access("kept"), Memlet("x[0]"))
    nested = state.add_nested_sdfg(inner, {"x"}, set())
    entry, exit_ = state.add_map("calls", {K: "0:10"})
    state.add_memlet_path(state.add_access("a"), entry, nested, dst_conn="x", memlet=Memlet(f"a[{K}]"))
    state.add_nedge(nested, exit_, Memlet())
    return sdfg


# --- 9 to 11: maps ----------------------------------------------------------------------------------------------------


@mutant("9", "11", "error", "i")
@mutant("9", "11", "error", "__i0")
@mutant("9", "11", "error", "i_K_gtx_local")
@mutant("9", "11", "error", "i_K_gtx_vertical_0")
@mutant("9", "11", "", K)
@mutant("9", "11", "", "i_K__gtx_vertical")
@mutant("9", "11", "", "i_V2E_gtx_localdim")
@mutant("9", "11", "", f"__gtx_coarse_{EDGE}")
def a_variable(name: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", "b", variable=name)
    return sdfg


@mutant("9", "11", "error", K, "i_K_gtx_horizontal")
@mutant("9", "11", "", K, EDGE)
def two_variables(first: str, second: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", "b", variable=first)
    move(state, "c", "d", variable=second)
    return sdfg


@mutant("10", "12", "info", K, "0:10")
@mutant("10", "12", "", K, "0:9")
@mutant("10", "12", "", EDGE, "0:10")
def a_second_map(variable: str, extent: str) -> dace.SDFG:
    sdfg, state = one_state()
    move(state, "a", "b")
    move(state, "c", "d", variable=variable, extent=extent)
    return sdfg


@mutant("11", "11.5", "error", "i_Level_gtx_vertical")
@mutant("11", "11.5", "", K)
@mutant("11", "11.5", "", f"__gtx_coarse_{K}")
@mutant("11", "11.5", "unknown", K, "i")
@mutant("11", "12", "unknown", EDGE)
@mutant("11", "12", "", K)
def a_renamed_variable(name: str, before: str = K) -> tuple[dace.SDFG, dace.SDFG]:
    return a_variable(name), a_variable(before)
