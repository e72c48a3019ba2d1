"""The rules for SDFGs: what breaks each of them, and what is nearly the same and legal."""

from __future__ import annotations

from typing import Any

import pytest

from gtstub.analysis.document import SdfgError
from gtstub.analysis.rules import RULES, check
from gtstub.signature.model import Dimension, FieldType, Parameter, ProgramSignature
from tests.support.rule_documents import (
    access,
    array,
    branches,
    copying,
    interstate,
    loop,
    map_entry,
    map_exit,
    mapped,
    moving,
    nested,
    order,
    reading,
    scalar,
    sdfg,
    state,
    tasklet,
    writing,
)

K = "i_K_gtx_vertical"
ARRAYS = {
    "a": array(),
    "b": array(),
    "c": array(),
    "t": array(transient=True),
    "u": array(transient=True),
    "flag": scalar(),
    "s": scalar(),
}


def one(*states: Any, edges: Any = (), arrays: Any = ARRAYS) -> Any:
    return sdfg(states, arrays, edges)


def found(document: Any, rule: str, **given: Any) -> list[tuple[str, str, str]]:
    """The findings of a rule: level, state and data."""
    return [(each.level, each.state, each.data) for each in check(document, **given).findings if each.rule == rule]


def both(first: Any, second: Any) -> Any:
    """A state with the nodes and edges of both parts."""
    return state("both", [*first["nodes"], *second["nodes"]], [*first["edges"], *second["edges"]])


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
    document = one(state("update", **mapped("a", "a", read, write)))
    assert found(document, "1") == [(level, "update", "a")]


def test_an_array_that_is_only_read_or_only_written_is_no_finding() -> None:
    assert found(one(moving("move", "a", "b")), "1") == []


@pytest.mark.parametrize(
    ("source", "target", "level"), [("1:9", "0:8", "error"), ("0:4", "5:9", "info"), ("0:n", "n + 1:m", "info")]
)
def test_a_copy_within_an_array(source: str, target: str, level: str) -> None:
    document = one(state("copy", [access("a"), access("a")], [copying(0, 1, "a", [source], [target])]))
    assert found(document, "1") == [(level, "copy", "a")]


def test_a_read_that_is_ordered_neither_before_nor_after_the_write_is_a_race() -> None:
    document = one(both(mapped("a", "b", K, K), mapped("c", "a", K, K, at=5)))
    assert found(document, "1") == [("error", "both", "a")]


def test_reading_before_writing_over_a_transient_is_no_race() -> None:
    first, second = mapped("a", "t", K, K), mapped("t", "a", K, K, at=4)
    document = one(state("two", [*first["nodes"][:4], *second["nodes"]], [*first["edges"], *second["edges"]]))
    assert found(document, "1") == [("info", "two", "a")]


@pytest.mark.parametrize(
    ("read", "write", "level"),
    [
        (f"{K} + 1", K, "error"),
        (f"{K} - r + 1", f"{K} - r", "error"),
        (f"{K} + 1", f"{K} + 1", "info"),
        (f"{K} - r", f"{K} - s", "info"),  # not decidable
        ("0", K, "info"),
    ],
)
def test_a_shift_over_a_transient(read: str, write: str, level: str) -> None:
    first, second = mapped("a", "t", read, K), mapped("t", "a", K, write)
    document = one(state("first", **first), state("second", **second), edges=[interstate(0, 1)])
    assert [each[0] for each in found(document, "1")] == [level]


def test_a_copy_to_a_buffer_and_back() -> None:
    def shifted(source: str) -> Any:
        edges = [copying(0, 1, "a", [source], ["0:8"]), copying(1, 2, "t", ["0:8"], ["0:8"])]
        return one(state("copies", [access("a"), access("t"), access("a")], edges))

    assert found(shifted("1:9"), "1") == [("error", "copies", "a")]
    assert found(shifted("0:8"), "1") == [("info", "copies", "a")]


def test_a_branch_of_a_map_that_reads_beside_the_one_that_writes_is_a_race() -> None:
    nodes = [access("a"), map_entry(K), tasklet(1), tasklet(1), map_exit(1), access("a"), access("b")]
    edges = [
        reading(0, 1, "a", "0:9"),
        reading(1, 2, "a", K),
        reading(1, 3, "a", K),
        writing(2, 4, "a", K),
        writing(3, 4, "b", K),
        writing(4, 5, "a", "0:9"),
        writing(4, 6, "b", "0:9"),
    ]
    assert found(one(state("fused", nodes, edges)), "1") == [("error", "fused", "a")]
    assert found(one(state("fused", nodes, [*edges, order(3, 2)])), "1") == [("info", "fused", "a")]


def test_what_a_nested_sdfg_does_with_an_array_is_unknown() -> None:
    inner = sdfg([state("inner")], {})
    nodes = [access("a"), nested(inner), access("a")]
    document = one(state("calls", nodes, [reading(0, 1, "a", "0:9"), writing(1, 2, "a", "0:9")]))
    assert found(document, "1") == [("unknown", "calls", "a")]


# --- 2 to 4: states ---------------------------------------------------------------------------------------------------


def test_the_number_of_states() -> None:
    two = one(state("first"), state("second"), edges=[interstate(0, 1)])
    three = one(state("first"), branches("if", state("yes"), state("no")))
    metric = one(state("first"), state("second"), branches("metrics_exit", state("timed"), state("not")))
    assert found(three, "2", before=two) == [("error", "", "")]
    assert found(metric, "2", before=two) == []
    assert check(three).not_checked["2/1"] == "needs the SDFG before"


@pytest.mark.parametrize("name", ["t", "flag", "n"])
def test_interstate_edges_use_no_array(name: str) -> None:
    expected = [("error", "", "t")] if name == "t" else []
    states = (state("first"), state("second"))
    assert found(one(*states, edges=[interstate(0, 1, {"n": f"{name} + 1"})]), "3") == expected
    assert found(one(*states, edges=[interstate(0, 1, condition=f"({name} > 0)")]), "3") == expected
    assert found(one(branches("if", *states, condition=f"{name}[0]")), "3") == expected
    assert [found(one(loop("repeat", [state("body")], condition=f"i < {name}")), "3")] == [
        [(level, "repeat", data) for level, _, data in expected]
    ]


def test_states_form_no_cycle() -> None:
    states = [state("first"), state("second"), state("third")]
    edges = [interstate(0, 1), interstate(1, 2)]
    assert found(one(*states, edges=edges), "4") == []
    assert found(one(*states, edges=[*edges, interstate(0, 2)]), "4") == []
    assert found(one(*states, edges=[*edges, interstate(2, 1)]), "4") == [("error", "second", "")]
    inside = loop("repeat", states, [*edges, interstate(2, 1)])
    assert found(one(inside), "4") == [("error", "second", "")]
    assert found(one(loop("repeat", states, edges)), "4") == []


# --- 5 to 8: transients -----------------------------------------------------------------------------------------------


def test_a_transient_is_not_written_again_downstream() -> None:
    first, second = moving("first", "a", "t"), moving("second", "b", "t")
    assert found(one(first, second, edges=[interstate(0, 1)]), "5") == [("error", "second", "t")]
    assert found(one(branches("if", first, second)), "5") == []
    after = one(branches("if", first, second), moving("after", "c", "t"), edges=[interstate(0, 1)])
    assert found(after, "5") == [("error", "after", "t")]
    assert found(one(loop("repeat", [first])), "5") == []
    assert found(one(first, moving("second", "b", "u"), edges=[interstate(0, 1)]), "5") == []


def test_a_scalar_that_is_written_again_is_advice() -> None:
    states = moving("first", "a", "s"), moving("second", "b", "s")
    assert found(one(*states, edges=[interstate(0, 1)]), "5") == [("advice", "second", "s")]


def test_global_memory_may_be_written_by_two_states() -> None:
    states = moving("first", "a", "b"), moving("second", "c", "b")
    assert found(one(*states, edges=[interstate(0, 1)]), "5") == []


def test_a_read_of_what_the_state_does_not_write_is_a_source() -> None:
    read, other = mapped("t", "b", K, K), mapped("a", "u", K, K, at=5)
    assert found(both(read, other) and one(both(read, other)), "6") == []
    document = one(state("late", [*read["nodes"], *other["nodes"]], [*read["edges"], *other["edges"], order(9, 0)]))
    assert found(document, "6") == [("error", "late", "t")]


def test_an_access_node_is_written_by_one_edge() -> None:
    def twice(target: str) -> Any:
        nodes = [tasklet(), tasklet(), access(target)]
        return one(state("twice", nodes, [writing(0, 2, target, "0:4"), writing(1, 2, target, "5:9")]))

    assert found(twice("t"), "7") == [("advice", "twice", "t")]
    assert found(twice("b"), "7") == [("info", "twice", "b")]
    once = one(state("once", [tasklet(), tasklet(), access("t")], [writing(0, 2, "t", "0:9"), order(1, 2)]))
    assert found(once, "7") == []


def test_a_state_has_one_access_node_of_a_transient() -> None:
    def two(first: str, second: str) -> Any:
        nodes = [tasklet(), tasklet(), access(first), access(second)]
        return one(state("two", nodes, [writing(0, 2, first, "0:4"), writing(1, 3, second, "5:9")]))

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
    arrays = {**ARRAYS, "t": array(transient=True, **attributes)}
    expected = [("error", "inside", "t")] if is_broken else []
    nodes = [map_entry(K), tasklet(0), access("t", 0), tasklet(0), map_exit(0)]
    edges = [order(0, 1), writing(1, 2, "t", "0"), reading(2, 3, "t", "0"), order(3, 4)]
    assert found(one(state("inside", nodes, edges), arrays=arrays), "") == expected
    inner = sdfg([state("deep", nodes[1:3], [])], arrays, name="inner")
    outer = state("outer", [map_entry(K), nested(inner, 0), map_exit(0)], [order(0, 1), order(1, 2)])
    assert found(one(outer), "") == [("error", "outer/inner/deep", "t")] * is_broken
    outside = state("outside", [tasklet(), access("t")], [writing(0, 1, "t", "0")])
    assert found(one(outside, arrays=arrays), "") == []


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
    document = one(state("move", **mapped("a", "b", variable, variable, variable=variable)))
    assert found(document, "9") == ([] if is_spelled else [("error", "move", variable)])


def test_a_dimension_has_one_kind() -> None:
    other = "i_K_gtx_horizontal"
    document = one(both(mapped("a", "b", K, K), mapped("a", "c", other, other, variable=other, at=5)))
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
        ("i_Edge_gtx_horizontal", "c", []),
        ("i_Level_gtx_vertical", "b", [("error", "move", "i_Level_gtx_vertical")]),
        ("i_K_gtx_horizontal", "t", [("error", "move", "i_K_gtx_horizontal")]),
    ],
)
def test_variables_iterate_over_the_dimension_that_they_name(variable: str, target: str, expected: Any) -> None:
    document = one(state("move", **mapped("t", target, "0", variable, variable=variable)))
    assert found(document, "9", program=FIELDS) == expected
    assert check(document).not_checked["9/11.1"] == "needs the signature of the program"


def test_maps_that_may_be_merged() -> None:
    same = one(both(mapped("a", "b", K, K), mapped("a", "c", K, K, at=5)))
    edges = "i_Edge_gtx_horizontal"
    other = one(both(mapped("a", "b", K, K), mapped("a", "c", edges, edges, variable=edges, at=5)))
    assert found(same, "10") == [("info", "both", "m")]
    assert found(other, "10") == []


def test_variables_are_not_renamed() -> None:
    def over(variable: str) -> Any:
        return one(state("move", **mapped("a", "b", variable, variable, variable=variable)))

    before = over(K)
    assert found(over(K), "11", before=before) == []
    edge = "i_Edge_gtx_horizontal"
    assert found(over(edge), "11", before=before) == [("error", "", edge), ("unknown", "", K)]
    assert found(one(state("empty")), "11", before=before) == [("unknown", "", K)]


# --- Results ----------------------------------------------------------------------------------------------------------


def test_every_rule_is_held_broken_or_not_checked() -> None:
    result = check(one(state("update", **mapped("a", "a", f"{K} + 1", K))))
    status = {rule.key: result.status(rule) for rule in RULES}
    assert [key for key, each in status.items() if each == "broken"] == ["1/3"]
    assert {key for key, each in status.items() if each == "not checked"} == set(result.not_checked)
    assert set(result.not_checked) == {"2/1", "/2", "9/11.1", "11/11.5", "11/12"}
    assert list(status.values()).count("held") == len(RULES) - 6


@pytest.mark.parametrize(
    "document",
    [
        {"type": "SDFG", "attributes": {"name": "old"}, "nodes": [{"type": "SDFGState"}], "edges": []},
        {"type": "SDFG", "attributes": {"name": "old"}, "nodes": 7, "edges": []},
    ],
)
def test_a_document_of_another_form(document: Any) -> None:
    with pytest.raises(SdfgError, match=r"^SDFG 'old' is not in the form in which DaCe 2 saves SDFGs\.$"):
        check(document)
