"""The rules for SDFGs: what breaks each of them, and what is nearly the same and legal."""

from __future__ import annotations

from typing import Any

import pytest

from gtstub.stub.sdfg.read import SdfgError, of_document
from gtstub.stub.signature.model import Dimension, FieldType, Parameter, ProgramSignature
from gtstub.tools.rules import RULES, Result, check
from tests.support.sdfg_documents import (
    ALL,
    EDGE,
    Json,
    K,
    access,
    branches,
    computed,
    copied,
    edge,
    loop,
    map_entry,
    map_exit,
    mapped,
    nested,
    order,
    reading,
    sdfg,
    state,
    tasklet,
    transient,
    writing,
)

ARRAYS = {"t": transient(), "u": transient(), "flag": transient(kind="Scalar"), "s": transient(kind="Scalar")}


def one(*blocks: Json, edges: Any = None, arrays: Any = ARRAYS) -> Json:
    """An SDFG; other names are global memory."""
    return sdfg(*blocks, edges=edges, arrays=arrays)


def checked(document: Json, *, before: Json | None = None, program: ProgramSignature | None = None) -> Result:
    return check(of_document(document), before=None if before is None else of_document(before), program=program)


def found(document: Any, rule: str, **given: Any) -> list[tuple[str, str, str]]:
    """The findings of a rule: level, state and data."""
    return [(each.level, each.state, each.data) for each in checked(document, **given).findings if each.rule == rule]


# --- 1: global memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "write", "level"),
    [
        (K, K, "info"),
        (f"{K} + 1", K, "error"),
        ("0", "5", "info"),  # never the same element
        ("5", "5", "error"),  # every iteration reads what another one writes
    ],
)
def test_input_and_output_in_one_map(read: str, write: str, level: str) -> None:
    document = one(state(mapped("a", "a", read=read, write=write), label="update"))
    assert found(document, "1") == [(level, "update", "a")]


def test_an_array_that_is_only_read_or_only_written_is_no_finding() -> None:
    assert found(one(state(mapped("a", "b"))), "1") == []


@pytest.mark.parametrize(
    ("source", "target", "level"), [("1:9", "0:8", "error"), ("0:4", "5:9", "info"), ("0:n", "n + 1:m", "info")]
)
def test_a_copy_within_an_array(source: str, target: str, level: str) -> None:
    document = one(state(copied("a", "a", source, target), label="copy"))
    assert found(document, "1") == [(level, "copy", "a")]


def test_a_read_that_is_ordered_neither_before_nor_after_the_write_is_a_race() -> None:
    document = one(state(mapped("a", "b"), mapped("c", "a"), label="both"))
    assert found(document, "1") == [("error", "both", "a")]


def test_reading_before_writing_over_a_transient_is_no_race() -> None:
    document = one(state(mapped("a", "t"), mapped("t", "a"), label="two"))
    assert found(document, "1") == [("info", "two", "a")]


@pytest.mark.parametrize(
    ("read", "write", "level"),
    [
        (f"{K} + 1", K, "error"),
        (f"{K} - r + 1", f"{K} - r", "error"),
        (f"{K} + 1", f"{K} + 1", "info"),
        (f"{K} + 2*(r + 1)", f"{K} + 2 + r + r", "info"),
        (f"{K} + r*s", f"{K} + r*s - 1", "error"),
        (f"{K} + int_floor({K}, 2)", f"{K} + int_floor({K}, 2)", "unknown"),
        (f"{K} - r", f"{K} - s", "unknown"),
        ("0", K, "unknown"),
    ],
)
def test_a_shift_over_a_transient(read: str, write: str, level: str) -> None:
    document = one(state(mapped("a", "t", read=read)), state(mapped("t", "a", write=write)))
    assert [each[0] for each in found(document, "1")] == [level]


def test_a_copy_to_a_buffer_and_back() -> None:
    def shifted(source: str) -> Any:
        return one(state(copied("a", "t", source, "0:8"), copied("t", "a", "0:8", "0:8"), label="copies"))

    assert found(shifted("1:9"), "1") == [("error", "copies", "a")]
    assert found(shifted("0:8"), "1") == [("info", "copies", "a")]


def test_a_branch_of_a_map_that_reads_beside_the_one_that_writes_is_a_race() -> None:
    nodes = "a", map_entry(K), tasklet(1), tasklet(1), map_exit(1), "a", "b"
    edges = [
        reading(0, 1, "a", ALL),
        reading(1, 2, "a", K),
        reading(1, 3, "a", K),
        writing(2, 4, "a", K),
        writing(3, 4, "b", K),
        writing(4, 5, "a", ALL),
        writing(4, 6, "b", ALL),
    ]
    assert found(one(state(*nodes, edges=edges, label="fused")), "1") == [("error", "fused", "a")]
    assert found(one(state(*nodes, edges=[*edges, order(3, 2)], label="fused")), "1") == [("info", "fused", "a")]


def test_what_a_nested_sdfg_does_with_an_array_is_unknown() -> None:
    call = computed(nested(sdfg(state("x"))), {"x": "a"}, {"x": "a"})
    document = one(state(call, label="calls"))
    assert found(document, "1") == [("unknown", "calls", "a")]


# --- 2 to 4: states ---------------------------------------------------------------------------------------------------


def test_the_number_of_states() -> None:
    choice = {"flag": state(), "else": state()}
    two = one(state(), state())
    three = one(state(), branches(choice))
    metric = one(state(), state(), branches(choice, label="metrics_exit"))
    assert found(three, "2", before=two) == [("error", "", "")]
    assert found(metric, "2", before=two) == []
    assert checked(three).not_checked["2/1"] == "needs the SDFG before"


@pytest.mark.parametrize("name", ["t", "flag", "n"])
def test_interstate_edges_use_no_array(name: str) -> None:
    expected = [("error", "", "t")] if name == "t" else []
    assert found(one(state(), state(), edges=[edge(0, 1, n=f"{name} + 1")]), "3") == expected
    assert found(one(state(), state(), edges=[edge(0, 1, f"({name} > 0)")]), "3") == expected
    assert found(one(branches({f"{name}[0]": state(), "else": state()})), "3") == expected
    assert found(one(loop(state(), condition=f"(k < {name})", label="repeat")), "3") == [
        (level, "repeat", data) for level, _, data in expected
    ]


def test_states_form_no_cycle() -> None:
    states = [state(label=label) for label in ("first", "second", "third")]
    edges = [edge(0, 1), edge(1, 2)]
    assert found(one(*states, edges=edges), "4") == []
    assert found(one(*states, edges=[*edges, edge(0, 2)]), "4") == []
    assert found(one(*states, edges=[*edges, edge(2, 1)]), "4") == [("error", "second", "")]
    inside = loop(*states, edges=[*edges, edge(2, 1)])
    assert found(one(inside), "4") == [("error", "second", "")]
    assert found(one(loop(*states, edges=edges)), "4") == []


# --- 5 to 8: transients -----------------------------------------------------------------------------------------------


def test_a_transient_is_not_written_again_downstream() -> None:
    first, second, after = (
        state(mapped(source, "t"), label=label) for source, label in (("a", "first"), ("b", "second"), ("c", "after"))
    )
    choice = branches({"flag": first, "else": second})
    assert found(one(first, second), "5") == [("error", "second", "t")]
    assert found(one(choice), "5") == []
    assert found(one(choice, after), "5") == [("error", "after", "t")]
    assert found(one(loop(first)), "5") == []
    assert found(one(first, state(mapped("b", "u"))), "5") == []


def test_a_scalar_that_is_written_again_is_advice() -> None:
    document = one(state(mapped("a", "s")), state(mapped("b", "s"), label="second"))
    assert found(document, "5") == [("advice", "second", "s")]


def test_global_memory_may_be_written_by_two_states() -> None:
    assert found(one(state(mapped("a", "b")), state(mapped("c", "b"))), "5") == []


def test_a_read_of_what_the_state_does_not_write_is_a_source() -> None:
    maps = mapped("t", "b"), mapped("a", "u")
    assert found(one(state(*maps)), "6") == []
    # The nodes of the first map are 0 to 4, those of the second 5 to 9: 'u' comes before 't'.
    assert found(one(state(*maps, edges=[order(9, 0)], label="late")), "6") == [("error", "late", "t")]


def test_an_access_node_is_written_by_one_edge() -> None:
    def twice(target: str) -> Any:
        edges = [writing(0, 2, target, "0:4"), writing(1, 2, target, "5:9")]
        return one(state(tasklet(), tasklet(), target, edges=edges, label="twice"))

    assert found(twice("t"), "7") == [("advice", "twice", "t")]
    assert found(twice("b"), "7") == [("info", "twice", "b")]
    once = one(state(tasklet(), tasklet(), "t", edges=[writing(0, 2, "t", ALL), order(1, 2)]))
    assert found(once, "7") == []


def test_a_state_has_one_access_node_of_a_transient() -> None:
    def two(first: str, second: str) -> Any:
        edges = [writing(0, 2, first, "0:4"), writing(1, 3, second, "5:9")]
        return one(state(tasklet(), tasklet(), first, second, edges=edges, label="two"))

    assert found(two("t", "t"), "8") == [("error", "two", "t")]
    assert found(two("s", "s"), "8") == [("advice", "two", "s")]
    assert found(two("t", "u"), "8") == []
    assert found(two("b", "b"), "8") == []


@pytest.mark.parametrize(
    ("attributes", "is_broken"),
    [
        ({}, False),
        ({"storage": "Register"}, False),
        ({"storage": "CPU_Heap"}, True),
        ({"lifetime": "Persistent"}, True),
    ],
)
def test_memory_inside_a_map(attributes: Any, is_broken: bool) -> None:
    arrays = {**ARRAYS, "t": transient(**attributes)}
    expected = [("error", "inside", "t")] if is_broken else []
    nodes = map_entry(K), tasklet(0), access("t", 0), tasklet(0), map_exit(0)
    edges = [order(0, 1), writing(1, 2, "t", "0"), reading(2, 3, "t", "0"), order(3, 4)]
    assert found(one(state(*nodes, edges=edges, label="inside"), arrays=arrays), "") == expected
    write = state(tasklet(), "t", edges=[writing(0, 1, "t", "0")], label="deep")
    inner = nested(one(write, arrays=arrays), scope=0)
    outer = state(map_entry(K), inner, map_exit(0), edges=[order(0, 1), order(1, 2)], label="outer")
    assert found(one(outer), "") == [("error", "outer/inner/deep", "t")] * is_broken
    assert found(one(write, arrays=arrays), "") == []


# --- 9 to 11: maps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "is_spelled"),
    [
        ("i_K_gtx_vertical", True),
        ("i_K__gtx_vertical", True),
        ("__gtx_coarse_i_Edge_gtx_horizontal", True),
        ("i_V2E_gtx_localdim", True),
        ("__i0", False),
        ("i_K_gtx_local", False),
        ("i_K_vertical", False),
    ],
)
def test_the_spelling_of_variables(variable: str, is_spelled: bool) -> None:
    document = one(state(mapped("a", "b", variable), label="move"))
    assert found(document, "9") == ([] if is_spelled else [("error", "move", variable)])


def test_a_dimension_has_one_kind() -> None:
    document = one(state(mapped("a", "b"), mapped("a", "c", "i_K_gtx_horizontal")))
    assert [each[0] for each in found(document, "9")] == ["error"]


FIELDS = ProgramSignature(
    "program",
    tuple(
        Parameter(name, FieldType("float64", (Dimension(dimension, kind),)))
        for name, dimension, kind in (("a", "K", "vertical"), ("b", "K", "vertical"), ("c", "Edge", "horizontal"))
    ),
    (),
    (),
    (),
)


@pytest.mark.parametrize(
    ("variable", "target", "expected"),
    [
        (K, "b", []),
        (K, "c", [("error", "move", K)]),
        (EDGE, "c", []),
        ("i_Level_gtx_vertical", "b", [("error", "move", "i_Level_gtx_vertical")]),
        ("i_K_gtx_horizontal", "t", [("error", "move", "i_K_gtx_horizontal")]),
    ],
)
def test_variables_iterate_over_the_dimension_that_they_name(variable: str, target: str, expected: Any) -> None:
    document = one(state(mapped("t", target, variable, read="0"), label="move"))
    assert found(document, "9", program=FIELDS) == expected
    assert checked(document).not_checked["9/11.1"] == "needs the signature of the program"


def test_maps_that_may_be_merged() -> None:
    same = one(state(mapped("a", "b"), mapped("a", "c"), label="both"))
    other = one(state(mapped("a", "b"), mapped("a", "c", EDGE)))
    assert found(same, "10") == [("info", "both", f"m[{K}]")]
    assert found(other, "10") == []


def test_variables_are_not_renamed() -> None:
    before, other = one(state(mapped("a", "b"))), one(state(mapped("a", "b", EDGE)))
    assert found(before, "11", before=before) == []
    assert found(other, "11", before=before) == [("error", "", EDGE), ("unknown", "", K)]
    assert found(one(state()), "11", before=before) == [("unknown", "", K)]


# --- Results ----------------------------------------------------------------------------------------------------------


def test_every_rule_is_held_broken_or_not_checked() -> None:
    result = checked(one(state(mapped("a", "a", read=f"{K} + 1"))))
    status = {rule.key: result.status(rule) for rule in RULES}
    assert [key for key, each in status.items() if each == "broken"] == ["1/3"]
    assert {key for key, each in status.items() if each == "not checked"} == set(result.not_checked)
    assert set(result.not_checked) == {"2/1", "/2", "9/11.1", "11/11.5", "11/12"}
    assert list(status.values()).count("held") == len(RULES) - 6


@pytest.mark.parametrize(
    "document",
    [
        {**sdfg(), "nodes": [{"type": "SDFGState"}]},
        {**sdfg(), "nodes": 7},
    ],
)
def test_a_document_of_another_form(document: Any) -> None:
    with pytest.raises(SdfgError, match=r"^SDFG 'prog' is not in the form that this gtstub reads: "):
        checked(document)
