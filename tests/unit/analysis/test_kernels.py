"""The kernels of SDFGs, and which reads what another has written."""

from __future__ import annotations

import pytest

from gtstub.analysis.kernels import Kernel, Kernels, Range, kernels
from tests.support.kernel_documents import EDGE, EDGE_AND_K, Block, Copy, Map, Nested, branches, document, loop, state

FIRST = Map("first", EDGE, ("x",), ("tmp",))
SECOND = Map("second", EDGE, ("tmp",), ("out",))


def found_in(*blocks: Block) -> Kernels:
    return kernels(document(*blocks))


def edges(found: Kernels) -> list[tuple[str, str, tuple[str, ...]]]:
    """Labels of writer and reader, and the arrays between them."""
    names = [kernel.label for kernel in found.kernels]
    return [(names[each.writer], names[each.reader], each.data) for each in found.dependences]


def test_a_kernel_is_described() -> None:
    found = found_in(state("s", Map("m", EDGE_AND_K, ("b", "a"), ("out",), tasklets=3)))
    edge, k = Range("i_Edge_gtx_horizontal", "first", "last", "1"), Range("i_K_gtx_vertical", "0", "nlev", "1")
    assert found == Kernels((Kernel(0, "m", "s", (), (edge, k), ("a", "b"), ("out",), 3, 0),), ())
    assert [each.text for each in (edge, k)] == ["Edge first:last", "K 0:nlev"]
    assert Range("i", "0", "n", "2").text == "i 0:n:2"


@pytest.mark.parametrize(
    ("end", "stop"), [("9", "10"), ("-1", "0"), ("$n - 1", "n"), ("-1 + $n", "n"), ("$n", "n + 1")]
)
def test_ranges_end_before_their_stop(end: str, stop: str) -> None:
    (kernel,) = found_in(state("s", Map("m", {"i": ("0", end)}))).kernels
    assert kernel.ranges[0].stop == stop


def test_a_kernel_depends_on_the_one_that_wrote_what_it_reads() -> None:
    for blocks in ((state("s", FIRST, SECOND),), (state("s", FIRST), state("t", SECOND))):
        found = found_in(*blocks)
        assert edges(found) == [("first", "second", ("tmp",))]
        assert [kernel.depth for kernel in found.kernels] == [0, 1]


def test_kernels_are_in_the_order_of_a_call() -> None:
    found = found_in(state("s", SECOND), state("t", FIRST))
    assert [kernel.label for kernel in found.kernels] == ["second", "first"]
    assert edges(found) == []


def test_a_kernel_hides_writes_to_the_same_subset_only() -> None:
    one, other = (
        Map(name, EDGE, (), ("tmp",), subset) for name, subset in (("one", ("0", "4")), ("other", ("5", "9")))
    )
    again = Map("again", EDGE, (), ("tmp",), ("0", "4"))
    assert edges(found_in(state("s", one), state("t", other), state("u", SECOND))) == [
        ("one", "second", ("tmp",)),
        ("other", "second", ("tmp",)),
    ]
    assert edges(found_in(state("s", one), state("t", again), state("u", SECOND))) == [("again", "second", ("tmp",))]


def test_of_two_branches_one_runs() -> None:
    found = found_in(
        branches(("(flag)", state("s", FIRST)), (None, state("t", Map("other", EDGE, ("tmp",), ("tmp",))))),
        state("u", SECOND),
    )
    assert edges(found) == [("first", "second", ("tmp",)), ("other", "second", ("tmp",))]
    assert [kernel.where for kernel in found.kernels] == [("flag",), ("not (flag)",), ()]


def test_a_loop_is_followed_once() -> None:
    (kernel,) = found_in(loop("k < (n)", state("s", Map("m", EDGE, ("tmp",), ("tmp",))))).kernels
    assert (kernel.where, kernel.depth) == (("while k < (n)",), 0)


@pytest.mark.parametrize("copy", [Copy("tmp", "copied"), Copy("tmp", "copied", "double")])
def test_copies_and_single_computations_pass_on_what_they_read(copy: Copy) -> None:
    found = found_in(state("s", FIRST, copy, Map("last", EDGE, ("copied",), ("out",))))
    assert edges(found) == [("first", "last", ("copied",))]


def test_arrays_of_a_nested_sdfg_have_their_names_outside() -> None:
    inner = document(state("inner", Map("within", EDGE, ("a",), ("b",)), Map("last", EDGE, ("b",), ("own",))))
    found = found_in(
        state("s", Map("before", EDGE, (), ("outer_a",)), Nested("nested", inner, ("a",), ("b",), "outer_"))
    )
    assert [(kernel.reads, kernel.writes) for kernel in found.kernels[1:]] == [
        (("outer_a",), ("outer_b",)),
        (("outer_b",), ("nested.own",)),
    ]
    assert edges(found) == [("before", "within", ("outer_a",)), ("within", "last", ("outer_b",))]


@pytest.mark.parametrize("document", [{}, {"nodes": [{"id": 0}], "edges": []}, {"nodes": 1, "edges": []}])
def test_another_form_raises_an_error_of_python(document: Block) -> None:
    with pytest.raises((KeyError, TypeError)):
        kernels(document)
