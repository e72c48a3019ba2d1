"""The kernels of SDFGs, and which reads what another has written."""

from __future__ import annotations

from typing import Any

import pytest

from gtstub.stub.sdfg.read import SdfgError, of_document
from gtstub.tools.report.kernels import Kernel, kernels
from tests.support.sdfg_documents import (
    EDGE,
    Json,
    K,
    Part,
    branches,
    computed,
    copied,
    loop,
    mapped,
    nested,
    sdfg,
    state,
    tasklet,
)

FIRST = mapped("x", "tmp", EDGE, label="first")
SECOND = mapped("tmp", "out", EDGE, label="second")


def found_in(*blocks: Json) -> tuple[Kernel, ...]:
    """The kernels of blocks that follow each other, listed backwards, because DaCe keeps no order."""
    made = sdfg(*blocks)
    return kernels(of_document({**made, "nodes": made["nodes"][::-1]}))


def edges(found: tuple[Kernel, ...]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Labels of writer and reader, and the arrays between them."""
    return [(found[each.kernel].label, kernel.label, each.data) for kernel in found for each in kernel.reads_from]


def test_a_kernel_is_described() -> None:
    map_ = mapped("b a", "out", f"{EDGE}=first:last - 1", f"{K}=0:-1 + nlev", tasklets=3)
    found = found_in(state(map_, label="s"))
    ranges = ("Edge first:last", "K 0:nlev")
    assert found == (Kernel(0, "m", "s", (), "Edge, K", ranges, ("a", "b"), ("out",), (), 3, 0),)
    (other,) = found_in(state(mapped("", "", "i=0:n - 1:2")))
    assert (other.dims, other.ranges) == ("i", ("i 0:n:2",))


@pytest.mark.parametrize(
    ("end", "stop"),
    [
        ("9", "10"),
        ("-1", "0"),
        ("n - 1", "n"),
        ("-1 + n", "n"),
        ("n", "n + 1"),
        ("-2 + n", "n - 1"),
        ("n - 3", "n - 2"),
        ("3 + n", "n + 4"),
        ("Min(m - 1, n - 2)", "Min(m - 1, n - 2) + 1"),
    ],
)
def test_ranges_end_before_their_stop(end: str, stop: str) -> None:
    (kernel,) = found_in(state(mapped("", "", f"i=0:{end}")))
    assert kernel.ranges == (f"i 0:{stop}",)


def test_a_kernel_depends_on_the_one_that_wrote_what_it_reads() -> None:
    for blocks in ((state(FIRST, SECOND),), (state(FIRST), state(SECOND))):
        found = found_in(*blocks)
        assert edges(found) == [("first", "second", ("tmp",))]
        assert [kernel.depth for kernel in found] == [0, 1]


def test_kernels_are_in_the_order_of_a_call() -> None:
    found = found_in(state(SECOND), state(FIRST))
    assert [kernel.label for kernel in found] == ["second", "first"]
    assert edges(found) == []


def test_a_kernel_hides_writes_to_the_same_subset_only() -> None:
    one, again = (mapped("", "tmp", f"{EDGE}=0:4", label=label) for label in ("one", "again"))
    other = mapped("", "tmp", f"{EDGE}=5:9", label="other")
    assert edges(found_in(state(one), state(other), state(SECOND))) == [
        ("one", "second", ("tmp",)),
        ("other", "second", ("tmp",)),
    ]
    assert edges(found_in(state(one), state(again), state(SECOND))) == [("again", "second", ("tmp",))]


def test_of_two_branches_one_runs() -> None:
    other = mapped("tmp", "tmp", EDGE, label="other")
    found = found_in(branches({"(flag)": state(FIRST), "else": state(other)}), state(SECOND))
    assert edges(found) == [("first", "second", ("tmp",)), ("other", "second", ("tmp",))]
    assert [kernel.where for kernel in found] == [("flag",), ("not (flag)",), ()]


def test_a_loop_is_followed_once() -> None:
    (kernel,) = found_in(loop(state(mapped("tmp", "tmp", EDGE)), condition="k < (n)"))
    assert (kernel.where, kernel.depth) == (("while k < (n)",), 0)


@pytest.mark.parametrize("copy", [copied("tmp", "copied"), computed(tasklet(), {"x": "tmp"}, {"y": "copied"})])
def test_copies_and_single_computations_pass_on_what_they_read(copy: Part) -> None:
    found = found_in(state(FIRST, copy, mapped("copied", "out", EDGE, label="last")))
    assert edges(found) == [("first", "last", ("copied",))]


def test_arrays_of_a_nested_sdfg_have_their_names_outside() -> None:
    inner = sdfg(state(mapped("a", "b", EDGE, label="within"), mapped("b", "own", EDGE, label="last")))
    call = computed(nested(inner), {"a": "outer_a"}, {"b": "outer_b"})
    found = found_in(state(mapped("", "outer_a", EDGE, label="before"), call))
    assert [(kernel.reads, kernel.writes) for kernel in found[1:]] == [
        (("outer_a",), ("outer_b",)),
        (("outer_b",), ("inner.own",)),
    ]
    assert edges(found) == [("before", "within", ("outer_a",)), ("within", "last", ("outer_b",))]


@pytest.mark.parametrize("nodes", [[{"id": 0}], 1])
def test_another_form_is_refused(nodes: Any) -> None:
    with pytest.raises(SdfgError, match=r"^SDFG 'prog' is not in the form that this gtstub reads: "):
        kernels(of_document({**sdfg(), "nodes": nodes}))
