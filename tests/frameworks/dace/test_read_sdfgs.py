"""What DaCe writes of SDFGs that gt4py does not make: consume scopes, write-conflict resolution, External memory."""

from __future__ import annotations

import dace
import pytest
from dace.libraries.fft.nodes.fft import FFT

from gtstub.frameworks.dace.internals import expanded
from gtstub.stub.bounds.claims import bounds_of
from gtstub.stub.sdfg.handle import handle_symbols
from gtstub.stub.sdfg.model import Range, Sdfg, states_in
from gtstub.stub.sdfg.read import of_document
from gtstub.stub.signature.model import Bounds
from gtstub.tools.report.kernels import Kernel, kernels


def read(sdfg: dace.SDFG) -> Sdfg:
    return of_document(sdfg.to_json())


@pytest.mark.parametrize(("elements", "end"), [("1", "1 - 1"), ("N", "N - 1")])
def test_the_elements_of_a_consume_scope_are_the_range_of_its_variable(elements: str, end: str) -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_symbol("N", dace.int32)
    sdfg.add_state().add_consume("use", ("p", elements))
    (state,) = states_in(read(sdfg))
    (entry,) = (node for node in state.nodes.values() if node.is_entry)
    assert (entry.variables, entry.ranges.ranges) == (("p",), (Range("0", end),))


def reading_at(write: str) -> Bounds:
    """The bounds of a program that reads B at the value that c has after this statement, which may be in a loop."""
    sdfg = dace.SDFG("prog")
    sdfg.add_symbol("N", dace.int32)
    for name, size, dtype in (("A", 1, dace.int32), ("B", dace.symbol("N"), dace.float64), ("out", 1, dace.float64)):
        sdfg.add_array(name, [size], dtype)
    sdfg.add_scalar("c", dace.int32, transient=True)
    first, use, last = sdfg.add_state("first"), sdfg.add_state("use"), sdfg.add_state("last")
    if write == "c = A[0]":
        first.add_nedge(first.add_read("A"), first.add_write("c"), dace.Memlet("A[0]"))
    else:
        tasklet = first.add_tasklet("write", {}, {"o"}, "o = 2")
        wcr = "lambda a, b: a + b" if write == "c += 2" else None
        first.add_edge(tasklet, "o", first.add_write("c"), None, dace.Memlet("c[0]", wcr=wcr))
    read_b = use.add_tasklet("use", {"i"}, {"o"}, "o = i")
    use.add_edge(use.add_read("B"), None, read_b, "i", dace.Memlet("B[k]"))
    use.add_edge(read_b, "o", use.add_write("out"), None, dace.Memlet("out[0]"))
    overwrite = last.add_tasklet("overwrite", {}, {"o"}, "o = 5")
    last.add_edge(overwrite, "o", last.add_write("A"), None, dace.Memlet("A[0]"))
    sdfg.add_edge(first, use, dace.InterstateEdge(assignments={"k": "c"}))
    sdfg.add_edge(use, last, dace.InterstateEdge())
    return bounds_of(read(sdfg), {"N": "int32"}, has_domains=False)


@pytest.mark.parametrize(("write", "is_known"), [("c = 2", True), ("c += 2", False), ("c = A[0]", False)])
def test_a_scalar_has_the_value_that_is_written_unless_it_had_another_before(write: str, is_known: bool) -> None:
    found = reading_at(write)
    assert any(use.array == "B" for claim in found.claims for use in claim.uses) == is_known
    assert any(each.array == "B" for each in found.unknown) != is_known


def adding(*, wcr: str | None) -> tuple[Kernel, ...]:
    """Three maps: one writes A, one writes or adds to it, one reads it."""
    sdfg = dace.SDFG("prog")
    for name in ("A", "x", "out"):
        sdfg.add_array(name, [10], dace.float64)
    maps = (("A", "o = 1.0", None, None), ("A", "o = v", "x", wcr), ("out", "o = v", "A", None))
    state = None
    for number, (target, code, source, resolution) in enumerate(maps):
        after = sdfg.add_state(f"state{number}")
        inputs = {} if source is None else {"v": dace.Memlet(f"{source}[i]")}
        output = {"o": dace.Memlet(f"{target}[i]", wcr=resolution)}
        after.add_mapped_tasklet(f"m{number}", {"i": "0:10"}, inputs, code, output, external_edges=True)
        if state is not None:
            sdfg.add_edge(state, after, dace.InterstateEdge())
        state = after
    return kernels(read(sdfg))


def test_a_kernel_that_adds_reads_what_it_adds_to() -> None:
    added = adding(wcr="lambda a, b: a + b")
    assert [[each.kernel for each in kernel.reads_from] for kernel in added] == [[], [0], [0, 1]]
    assert added[1].reads == ("A", "x")
    assert [[each.kernel for each in kernel.reads_from] for kernel in adding(wcr=None)] == [[], [], [1]]


def test_the_sizes_of_external_memory_are_in_symbols_of_both_sdfgs() -> None:
    inner = dace.SDFG("inner")
    inner.add_symbol("M", dace.int32)
    inner.add_transient("t", [dace.symbol("M")], dace.float64, lifetime=dace.AllocationLifetime.External)
    inner.add_state()
    outer = dace.SDFG("outer")
    outer.add_symbol("N", dace.int32)
    outer.add_state().add_nested_sdfg(inner, {}, {}, {"M": "N"})
    assert handle_symbols(read(outer)) == {"M", "N"}


def test_what_a_library_node_keeps_in_the_handle_is_known_before_it_is_compiled() -> None:
    """A plan of cuFFT, which DaCe makes for one size in the initialisation of the library."""
    sdfg = dace.SDFG("transform")
    for name in ("x", "y"):
        sdfg.add_array(name, [dace.symbol("N")], dace.complex128, storage=dace.StorageType.GPU_Global)
    state, node = sdfg.add_state(), FFT("node")
    node.implementation, node.factor = "cuFFT", 1
    state.add_node(node)
    state.add_edge(state.add_read("x"), None, node, "_inp", dace.Memlet("x[0:N]"))
    state.add_edge(node, "_out", state.add_write("y"), None, dace.Memlet("y[0:N]"))
    assert "N" not in handle_symbols(read(sdfg))
    assert "N" in handle_symbols(read(expanded(sdfg)))
