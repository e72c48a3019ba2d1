"""Transients whose sizes or places are easily taken for others; test_memory.py has the plain ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gtstub.stub.sdfg.read import of_document
from gtstub.tools.memory import memory as analysis
from gtstub.tools.memory.memory import Memory
from tests.support.sdfg_documents import Json, branches, edge, loop, nested, region, sdfg, state, transient


def memory(document: Json, sizes: Mapping[str, int]) -> Memory:
    return analysis.memory(of_document(document), sizes)


def sizes(found: Memory) -> dict[str, int | None]:
    return {each.name: each.bytes for each in found.transients}


def peak(found: Memory) -> int | None:
    (use,) = found.uses
    return use.peak


def test_dace_leaves_out_the_type_int32() -> None:
    array = transient("10")
    del array["attributes"]["dtype"]
    assert sizes(memory(sdfg(state("a"), arrays={"a": array}), {})) == {"a": 40}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("symbol($N, dtype=dace.int64)", 8 * 11),
        ("2*symbol($N, dtype=dace.int64) + Max(1, symbol($N, dtype=dace.int64))", 8 * 33),
        ("__int_floor($N, 2)", 8 * 5),
    ],
)
def test_forms_of_sizes(text: str, expected: int) -> None:
    found = memory(sdfg(state("a"), arrays={"a": transient(text)}), {"N": 11})
    assert sizes(found) == {"a": expected}
    assert found.unknown == ()


# --- Symbols that edges assign ----------------------------------------------------------------------------------------


def assigned(*blocks: Any, edges: Any = None, **arrays: str) -> Memory:
    """The memory of an SDFG whose first edge assigns `n`, if no others are given."""
    given = [edge(0, 1, n="4"), *(edge(i, i + 1) for i in range(1, len(blocks) - 1))] if edges is None else edges
    document = sdfg(*blocks, arrays={name: transient(size) for name, size in arrays.items()}, edges=given)
    return memory(document, {"n": 100})


def test_a_symbol_is_known_behind_its_only_assignment() -> None:
    assert sizes(assigned(state(), state("a"), state("a"), a="n")) == {"a": 32}
    assert sizes(assigned(state(), branches({"x": state("a"), "else": state()}), a="n")) == {"a": 32}
    inside = sdfg(state(), state("a"), edges=[edge(0, 1, n="4")], arrays={"a": transient("n")})
    assert sizes(memory(sdfg(state(nested(inside))), {})) == {"a": 32}


@pytest.mark.parametrize(
    ("blocks", "edges"),
    [
        ((state("a"), state("a")), [edge(0, 1, n="4")]),
        ((state(), state(), state("a")), [edge(0, 1), edge(0, 2), edge(1, 2, n="4")]),
        ((state(), state(), state("a")), [edge(0, 1, "n > 1"), edge(1, 2, n="4")]),
        ((state(), state("a")), [edge(0, 1, "n > 1", n="4")]),
        ((state(), state("a"), state()), [edge(0, 1, n="4"), edge(0, 2, m="n")]),
        ((state(), state("a"), loop(state(), condition="k < n")), [edge(0, 1, n="4"), edge(0, 2)]),
        ((state(), state("a"), state()), [edge(2, 0), edge(0, 1), edge(1, 2, n="4")]),
        ((state(), state(nested(sdfg(state()), m="n")), state("a")), [edge(0, 1), edge(1, 2, n="4")]),
    ],
    ids=[
        *("an array before it", "a way around it", "a condition before it", "its own condition", "another edge"),
        *("a loop", "a cycle without a beginning", "a nested SDFG before it"),
    ],
)
def test_a_symbol_that_is_also_read_elsewhere_is_unknown(blocks: Any, edges: Any) -> None:
    assert sizes(assigned(*blocks, edges=edges, a="n")) == {"a": None}


def test_a_symbol_of_a_branch_is_unknown_after_the_branch() -> None:
    choice = branches({"x": region(state(), state("a"))})
    choice["branches"][0][1]["edges"] = [edge(0, 1, n="4")]
    assert sizes(assigned(choice, edges=[], a="n")) == {"a": 32}
    assert sizes(assigned(choice, state("b"), edges=[edge(0, 1)], a="n", b="n")) == {"a": None, "b": None}


# --- Sizes that are known late ----------------------------------------------------------------------------------------


def test_what_is_allocated_late_is_freed_after_its_last_state() -> None:
    blocks = [state(), *(state(*names) for names in (["a"], ["a", "b"], ["b"], [], ["c"], ["d"], ["c"]))]
    found = assigned(*blocks, a="n", b="2*n", c="5*n", d="1")
    assert sizes(found) == {"a": 32, "b": 64, "c": 160, "d": 8}
    assert peak(found) == 168
    assert [each.bytes for each in found.uses] == [264]


def test_late_sizes_follow_the_order_of_edges() -> None:
    blocks = state("b"), state("a"), state("b"), state("a"), state()
    edges = edge(4, 1, n="4"), edge(1, 3), edge(3, 0), edge(0, 2)
    assert peak(assigned(*blocks, edges=edges, a="n", b="2*n")) == 64


@pytest.mark.parametrize(
    "blocks",
    [
        (branches({"x": state("a"), "else": state("a")}),),
        (loop(state("a")), state("a")),
        (state("a"), loop(state("a"))),
    ],
    ids=["two branches", "first a loop", "at last a loop"],
)
def test_a_late_size_without_a_first_and_a_last_state_is_unknown(blocks: Any) -> None:
    assert sizes(assigned(state(), *blocks, a="n")) == {"a": None}


def test_the_size_of_what_edges_read_late_is_unknown() -> None:
    edges = edge(0, 1, n="4"), edge(1, 2, m="a[0]")
    assert sizes(assigned(state(), state("a"), state(), edges=edges, a="n")) == {"a": None}


# --- Nested SDFGs and constants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lifetime", "expected"), [("Scope", 24), ("SDFG", 24), ("Persistent", 24), ("Global", 16), ("External", 16)]
)
def test_global_and_external_sizes_of_a_nested_sdfg_are_written_as_they_are(lifetime: str, expected: int) -> None:
    inner = sdfg(state("a"), arrays={"a": transient("N", lifetime=lifetime)})
    assert sizes(memory(sdfg(state(nested(inner, N="N + 1"))), {"N": 2})) == {"a": expected}


def test_registers_with_a_constant_size_stay_on_the_stack() -> None:
    constants = {"C": [{"type": "Scalar"}, 9000]}
    arrays = {"a": transient("C", storage="Register"), "b": transient("9000", storage="Register")}
    inner = sdfg(state("c"), arrays={"c": transient("C + 1", storage="Register")})
    found = memory(sdfg(state("a", "b", nested(inner)), arrays=arrays, constants_prop=constants), {})
    assert {each.name: (each.bytes, each.allocated) for each in found.transients} == {
        "a": (72_000, "stack"),
        "b": (72_000, "call"),
        "c": (72_008, "stack"),
    }
