"""What is read from SDFGs in their JSON form, and what is left out of claims because it is said already."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from gtstub.stub.bounds import access, conditions, lookups, names, regions
from gtstub.stub.bounds.access import Access as Reached
from gtstub.stub.bounds.access import BoundedLoop, Lookup, Scope
from gtstub.stub.bounds.claims import _claim, bounds_of
from gtstub.stub.bounds.extremes import extreme
from gtstub.stub.bounds.narrowing import cases
from gtstub.stub.bounds.simplify import normalized, simplified
from gtstub.stub.sdfg.model import Loop, Node, Sdfg, Subset, regions_in
from gtstub.stub.sdfg.model import Range as Indices
from gtstub.stub.sdfg.read import of_document
from gtstub.stub.signature.expressions import Expression, extremum, parse, symbol
from gtstub.stub.signature.model import Bounds, Claim, Condition, Follow, Unknown, Use

NAMES = ("a", "b", "c", "flag")
SCOPE = Scope({name: symbol(name) for name in NAMES}, {})


def read(text: str) -> Expression:
    found = parse(text)
    assert found is not None
    return found


def array(*shape: str, **attributes: Any) -> dict[str, Any]:
    return {"type": "Array", "attributes": {"shape": list(shape), "strides": ["1"] * len(shape), **attributes}}


def node(number: int, type_: str, **attributes: Any) -> dict[str, Any]:
    return {"id": number, "type": type_, "attributes": attributes}


def edge(src: int, dst: int, data: str = "", index: str = "", connectors: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """`index` is one index, or 'first:last'."""
    first, _, last = index.partition(":")
    subset = {"type": "Range", "ranges": [{"start": first, "end": last or first, "step": "1", "tile": "1"}]}
    attributes = {"data": {"type": "Memlet", "attributes": {"data": data, "subset": subset} if data else {}}}
    ends = {"src": str(src), "dst": str(dst), "src_connector": connectors[0], "dst_connector": connectors[1]}
    return {**ends, "attributes": attributes}


READ = [node(0, "AccessNode", data="A"), node(1, "Tasklet", code={})]


def holds(condition: Condition, values: Mapping[str, int]) -> bool:
    left, right = condition.left.evaluate(values), condition.right.evaluate(values)
    return {"<": left < right, "==": left == right, "!=": left != right}[condition.relation]


# --- Conditions -------------------------------------------------------------------------------------------------------

GIVEN = [{"a": a, "b": b, "c": 2, "flag": flag} for a in range(-2, 4) for b in range(-2, 4) for flag in (0, 1)]


def all_hold(found: access.Conditions, values: Mapping[str, int]) -> bool:
    return all(
        any(all_hold(case, values) for case in each.cases) if isinstance(each, access.AnyOf) else holds(each, values)
        for each in found
    )


@pytest.mark.parametrize(
    "text",
    [
        "a < b",
        "a <= b",
        "a > b + 1",
        "a >= 2*b",
        "a == b",
        "a != b",
        "flag",
        "not flag",
        "not (a < b)",
        "not (a == b)",
        "not (a != b)",
        "(a < b) and (b < c) and flag",
        "a < b or flag",
        "a < b or b < c and flag",
        "(a < b or flag) and not (b < c and a == b)",
        "not (a < b or not flag)",
        "True",
        "False",
        "1",
        "min(a, b) < max(b, c)",
    ],
)
@pytest.mark.parametrize("is_true", [True, False])
def test_conditions_hold_when_their_text_does(text: str, is_true: bool) -> None:
    found = conditions.stated(text, SCOPE, holds=is_true)
    assert found is not None
    for values in GIVEN:
        expected = bool(eval(text, {"min": min, "max": max}, dict(values)))
        assert all_hold(found, values) == (expected is is_true), values


@pytest.mark.parametrize(
    "text", ["", "a <", "unknown", "unknown < a", "a < b < c", "f(a)", "a and unknown", "a[0] < b", "a in b", "a % 2"]
)
@pytest.mark.parametrize("is_true", [True, False])
def test_other_conditions_are_not_known(text: str, is_true: bool) -> None:
    assert conditions.stated(text, SCOPE, holds=is_true) is None


def test_conditions_of_too_many_cases_are_not_known() -> None:
    cases = " and ".join(f"(a < {number} or b < {number})" for number in range(5))
    assert conditions.stated(cases, SCOPE) is None
    assert conditions.stated(cases, SCOPE, holds=False) is not None


# --- Loops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "condition", "update", "expected"),
    [
        ("i = a", "i < b", "i = i + 1", ("a", "b - 1", 1)),
        ("i = a + 1", "i <= b", "i = i + 1", ("a + 1", "b", 1)),
        ("i = a", "i < b", "i = (1 + i)", ("a", "b - 1", 1)),
        ("i = (- a)", "i < (- b)", "i = i - (- 1)", ("0 - a", "0 - b - 1", 1)),
        ("i = b - 1", "i > a", "i = i - 1", ("b - 1", "a + 1", -1)),
        ("i = b - 1", "i >= a", "i = i - 1", ("b - 1", "a", -1)),
        ("i = b - 1", "(i >= a)", "i = (i - 1)", ("b - 1", "a", -1)),
        ("i = (b - 1)", "(i > (- 1))", "i = (i + (- 1))", ("b - 1", "0", -1)),
        ("i = b - 1", "i > -1", "i = i + -1", ("b - 1", "0", -1)),
        ("i = a", "i < b", "i = i + 2", ("a", "b - 1", 2)),
        ("i = (b - 1)", "(i > (- 1))", "i = (i + (- 2))", ("b - 1", "0", -2)),
    ],
)
def test_loops_have_a_first_and_a_last_value(
    init: str, condition: str, update: str, expected: tuple[str, str, int]
) -> None:
    first, last, step = expected
    assert conditions.loop(init, condition, update, "i", SCOPE) == (read(first), read(last), step, "int64")


@pytest.mark.parametrize(
    ("init", "condition", "update"),
    [
        ("i = a", "i < b", "i = i * 1"),
        ("i = a", "i < b", "i = i * 2"),
        ("i = a", "i > b", "i = i * (-1)"),
        ("i = a", "i < b", "i = i + a"),
        ("i = a", "i < b", "i = i + (- 1)"),
        ("i = a", "i < b", "i = j + 1"),
        ("i = a", "i > b", "i = i + 1"),
        ("i = a", "i < b", "i = i - 1"),
        ("i = a", "i != b", "i = i + 1"),
        ("i = a", "b > i", "i = i + 1"),
        ("i = a", "j < b", "i = i + 1"),
        ("j = a", "i < b", "i = i + 1"),
        ("i = unknown", "i < b", "i = i + 1"),
        ("i = a", "i < unknown", "i = i + 1"),
        ("i = a", "i < b and flag", "i = i + 1"),
        ("i = a", "i < b", ""),
        ("", "i < b", "i = i + 1"),
        ("i = a", "", "i = i + 1"),
    ],
)
def test_other_loops_have_no_known_ends(init: str, condition: str, update: str) -> None:
    assert conditions.loop(init, condition, update, "i", SCOPE) is None


@pytest.mark.parametrize(
    ("types", "condition", "update", "last"),
    [
        ("uu", "i > 0", "i = i - 1", "1"),
        ("uu", "i > 0", "i = i - 2", None),
        ("uu", "i > 1", "i = i - 2", "2"),
        ("uu", "i >= 0", "i = i - 1", None),
        ("uu", "i >= 1", "i = i - 2", None),
        ("uu", "i >= 2", "i = i - 2", "2"),
        ("uu", "i > b", "i = i - 1", "b + 1"),
        ("uu", "i > b", "i = i - 2", None),
        ("ui", "i > 1", "i = i - 2", "2"),
        ("iu", "i > b", "i = i - 2", None),
        ("ii", "i > b", "i = i - 2", "b + 1"),
    ],
)
def test_unsigned_variables_that_count_down_past_0_wrap(
    types: str, condition: str, update: str, last: str | None
) -> None:
    """`types` are those of the variable and of a and b."""
    own, others = ("uint32" if each == "u" else "int32" for each in types)
    scope = dataclasses.replace(SCOPE, types={"a": others, "b": others})
    found = conditions.loop("i = a", condition, update, "i", scope, own)
    assert found == (last and (found[0], read(last), -int(update[-1]), own))


# --- Regions ----------------------------------------------------------------------------------------------------------


def sdfg(arrays: Mapping[str, Any], *blocks: dict[str, Any], edges: Sequence[Any] = ()) -> Sdfg:
    attributes = {"name": "prog", "_arrays": dict(arrays)}
    return of_document({"type": "SDFG", "attributes": attributes, "nodes": list(blocks), "edges": list(edges)})


def region(blocks: int, *edges: tuple[Any, ...]) -> Sdfg:
    """Each block reads an array of its own."""
    states = [
        {
            "id": number,
            "type": "SDFGState",
            "nodes": [node(0, "AccessNode", data=f"A{number}"), node(1, "Tasklet", code={})],
            "edges": [edge(0, 1, f"A{number}", "0")],
        }
        for number in range(blocks)
    ]
    arrays = {f"A{number}": array("1") for number in range(blocks)}
    return sdfg(arrays, *states, edges=[transition(*each) for each in edges])


def transition(src: int, dst: int, condition: str = "", **assignments: str) -> dict[str, Any]:
    data = {"condition": {"string_data": condition} if condition else None, "assignments": assignments}
    return {"src": str(src), "dst": str(dst), "attributes": {"data": {"attributes": data}}}


A_BELOW_B = (Condition(symbol("a"), "<", symbol("b")),)
OTHERWISE = (Condition(symbol("b"), "<", symbol("a") + 1),)
C_HOLDS = Condition(symbol("c"), "!=", Expression())


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (region(3, (0, 1), (1, 2)), {0: (), 1: (), 2: ()}),
        (
            region(4, (0, 1, "a < b"), (0, 2, "not (a < b)"), (1, 3), (2, 3)),
            {0: (), 1: A_BELOW_B, 2: OTHERWISE, 3: ()},
        ),
        (region(4, (0, 1, "a < b"), (0, 2, "x"), (1, 3), (2, 3)), {0: (), 1: A_BELOW_B, 3: None}),
        (region(4, (0, 1, "x"), (0, 2, "not x"), (1, 3), (2, 3)), {0: (), 3: ()}),
        (region(4, (0, 1, "not flag"), (0, 2, "(not (not flag))"), (1, 3), (2, 3)), {0: (), 3: ()}),
        (region(3, (0, 1, "a < b"), (1, 2)), {0: (), 1: A_BELOW_B, 2: A_BELOW_B}),
        (region(3, (0, 1, "a < b"), (0, 2, "not (a < b)")), {0: (), 1: A_BELOW_B, 2: OTHERWISE}),
        (
            region(5, (0, 1, "a < b"), (1, 2), (0, 3, "not (a < b)"), (2, 4), (3, 4)),
            {0: (), 1: A_BELOW_B, 2: A_BELOW_B, 3: OTHERWISE, 4: ()},
        ),
        # A choice inside a choice, of which both ways meet again.
        (
            region(6, (0, 1, "a < b"), (1, 2, "c"), (1, 3, "not c"), (2, 4), (3, 4), (0, 5, "not (a < b)")),
            {1: A_BELOW_B, 2: (*A_BELOW_B, C_HOLDS), 4: A_BELOW_B, 5: OTHERWISE},
        ),
        # Two ways into a block that need not be on any way.
        (
            region(5, (0, 1, "a"), (0, 2, "b"), (0, 3, "c"), (1, 4), (2, 4)),
            {0: (), 1: (Condition(symbol("a"), "!=", Expression()),), 4: None},
        ),
        (region(3, (0, 1), (1, 2), (2, 1)), {0: (), 1: None, 2: None}),
        (region(2), {0: None, 1: None}),
    ],
    ids=[
        "one way",
        "two ways",
        "an unknown condition",
        "data",
        "negated twice",
        "an end before",
        "two ends",
        "chains",
        "a choice in a choice",
        "joined",
        "a cycle",
        "two starts",
    ],
)
def test_blocks_are_reached_under_conditions(made: Sdfg, expected: Mapping[int, Any]) -> None:
    found = regions.accesses(made, dict.fromkeys(NAMES, "int32")).accesses
    conditions_of = {each.array: each.conditions if isinstance(each, Reached) else None for each in found}
    assert {block: conditions_of[f"A{block}"] for block in expected} == expected


@pytest.mark.parametrize("kind", ["BreakBlock", "ContinueBlock", "ReturnBlock"])
def test_nothing_is_known_where_a_block_leaves(kind: str) -> None:
    inner = {"id": 0, "type": "LoopRegion", "attributes": {}, "nodes": [{"id": 0, "type": kind}], "edges": []}
    branch = {"type": "ControlFlowRegion", "nodes": [inner], "edges": []}
    last = {"id": 1, "type": "ConditionalBlock", "branches": [[None, branch]]}
    first = {"id": 0, "type": "SDFGState", "nodes": READ, "edges": [edge(0, 1, "A", "0")]}
    made = {"A": array("1")}
    assert bounds_of(sdfg(made, first), {}, has_domains=True).known == 1
    assert bounds_of(sdfg(made, first, last, edges=[transition(0, 1)]), {}, has_domains=True).known == 0


def test_symbols_that_edges_assign_are_found_at_any_depth() -> None:
    states = [{"id": number, "type": "SDFGState", "nodes": [], "edges": []} for number in range(2)]
    inner = {"type": "ControlFlowRegion", "nodes": states, "edges": [transition(0, 1, n="a + 1")]}
    conditional = {"id": 0, "type": "ConditionalBlock", "branches": [[None, inner]]}
    loop = {"id": 0, "type": "LoopRegion", "attributes": {"loop_variable": "i"}, "nodes": [conditional], "edges": []}
    made = sdfg({}, loop)
    assert names.assignments_in(made) == {"n": {"a + 1"}, "i": {"", "?"}}
    (found,) = (each for each in regions_in(made) if isinstance(each, Loop))
    assert names.assignments_in(found) == {"n": {"a + 1"}}


# --- Look-ups ---------------------------------------------------------------------------------------------------------


def tasklet(code: str, language: str = "Python") -> Node:
    return Node(0, "Tasklet", "", None, "", code=code, language=language)


def indexed(text: str, language: str = "Python") -> dict[str, list[tuple[str, ...]]]:
    """The indices that a tasklet reads, each followed by the tests before it."""
    return {
        name: [
            (
                ", ".join(map(ast.unparse, element.indices)),
                *(ast.unparse(test) if is_true else f"not {ast.unparse(test)}" for test, is_true in element.tests),
            )
            for element in elements
        ]
        for name, elements in lookups._elements(tasklet(text, language)).items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = f[i]", {"f": [("i",)]}),
        ("x = f[i - a, 0]", {"f": [("i - a, 0",)]}),
        ("x = f[i, k] if i != -1 else 0.0", {"f": [("i, k", "i != -1")]}),
        ("x = f[i] if i == -1 else g[k]", {"f": [("i", "i == -1")], "g": [("k", "not i == -1")]}),
        ("x = f[i] + 2*f[j]", {"f": [("i",), ("j",)]}),
        ("x = f[g[i]]", {"f": [("g[i]",)], "g": [("i",)]}),
        (
            "x = f[i] if a else f[j] if b else g[k]",
            {"f": [("i", "a"), ("j", "not a", "b")], "g": [("k", "not a", "not b")]},
        ),
        ("x = a and f[i] > b or g[j]", {"f": [("i", "a")], "g": [("j", "not a and f[i] > b")]}),
        ("x = f[i] if g[j] > 0 else 0.0", {"f": [("i", "g[j] > 0")], "g": [("j",)]}),
        ("x = (f[i] if a else g[j]) + f[k]", {"f": [("i", "a"), ("k",)], "g": [("j", "not a")]}),
        ("f[i] = x", {"f": [("i",)]}),
        ("x = f[i] + sum(f)", {}),
        ("x = f[i]; y = f[j]", {}),
        ("if a:\n    x = f[i]", {}),
        ("x = f", {}),
        ("x = (", {}),
        ("", {}),
    ],
)
def test_tasklets_read_elements_after_tests(text: str, expected: Mapping[str, Any]) -> None:
    assert indexed(text) == expected


@pytest.mark.parametrize(
    ("test", "is_true", "guard"),
    [
        ("i != -1", True, "i"),
        ("i != (-1)", True, "i"),
        ("i == -1", False, "i"),
        ("i != -1", False, None),
        ("i == -1", True, None),
        ("i != -2", True, None),
        ("i > -1", True, None),
        ("flag", True, None),
    ],
)
def test_the_connector_that_guards_an_element_is_known(test: str, is_true: bool, guard: str | None) -> None:
    assert lookups._guard(ast.parse(test, mode="eval").body, is_true) == guard


def test_tasklets_in_other_languages_are_not_read() -> None:
    assert indexed("x = f[i]", "CPP") == {}


# --- Accesses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"step": "2"}, {"tile": "4"}, {"step": "-1"}])
def test_the_ends_of_subsets_with_steps_do_not_tell_their_elements(changed: dict[str, str]) -> None:
    assert Subset((Indices("0", "n"),)).ends == (("0", "n"),)
    assert Subset((Indices("0", "n", **changed),)).ends is None


@pytest.mark.parametrize("document", [{"type": "SubsetUnion"}, {"type": "SubsetUnion", "subset_list": []}])
def test_subsets_of_other_kinds_are_not_read(document: Any) -> None:
    one = edge(0, 1, "A", "0")
    one["attributes"]["data"]["attributes"]["subset"] = document
    found = bounds({"A": array("1")}, READ, [one])
    assert (found.known, found.unknown) == (0, (Unknown("A", "in a form that is not read", 1),))


def test_indices_are_subsets_of_one_element() -> None:
    one = edge(0, 1, "A", "0")
    one["attributes"]["data"]["attributes"]["subset"] = {"type": "Indices", "indices": ["0"]}
    assert bounds({"A": array("1")}, READ, [one]).known == 1


def reached(first: str, last: str, *ranges: BoundedLoop) -> Claim | None:
    return _claim(Reached("vn", ranges, (), ((read(first), read(last)),)))


def test_an_access_in_loops_reaches_from_the_least_to_the_greatest_index() -> None:
    i, j = BoundedLoop("i", read("a"), read("b - 1")), BoundedLoop("j", read("0"), read("2"))
    assert reached("i + j - 1", "i + j - 1", i, j) == Claim(
        (Condition(read("a"), "<", read("b")), Condition(read("0"), "<", read("3"))),
        (Use("vn", 0, (read("a - 1"),), (read("b"),)),),
        (),
    )
    falling = reached("c - i", "c - i", i)
    assert falling is not None
    assert falling.uses == (Use("vn", 0, (read("c - b + 1"),), (read("c - a"),)),)
    limited = reached("min(i, c)", "min(i, c)", i)
    assert limited is not None
    assert limited.uses == (Use("vn", 0, (read("min(a, c)"),), (read("min(b - 1, c)"),)),)


def test_the_elements_of_some_accesses_are_not_known() -> None:
    i = BoundedLoop("i", read("a"), read("b - 1"))
    assert reached("i + min(0 - i, c)", "i + min(0 - i, c)", i) is None  # rises and falls


def test_a_loop_may_end_at_the_variable_of_another_loop() -> None:
    i, of_i = BoundedLoop("i", read("0"), read("b - 1")), BoundedLoop("j", read("1"), read("i"))
    found = reached("j - i", "j - i", i, of_i)
    assert found == Claim((Condition(read("1"), "<", read("b")),), (Use("vn", 0, (read("2 - b"),), (read("0"),)),), ())
    # So may the elements of a round.
    assert reached("1", "i", i) == Claim(found.when, (Use("vn", 0, (read("1"),), (read("b - 1"),)),), ())


def test_a_loop_may_end_at_a_multiple_of_the_variable_of_another_loop() -> None:
    loops = BoundedLoop("i", read("a"), read("b - 1")), BoundedLoop("j", read("0"), read("2*i"))
    found = reached("j", "j", *loops)
    assert found is not None
    given = [{"a": a, "b": b} for a in range(-3, 4) for b in range(-3, 5)]
    check_reached(Reached("vn", loops, (), ((read("j"), read("j")),)), found, given)


def check_reached(access: Reached, claim: Claim, values: Sequence[Mapping[str, int]]) -> None:
    """Compares a claim about one axis with the indices in all rounds."""
    for given in values:
        rounds = [given]
        for loop in access.loops:
            rounds = [
                {**outer, loop.variable: number}
                for outer in rounds
                for number in range(loop.first.evaluate(outer), loop.last.evaluate(outer) + 1)
            ]
        ((first, last),) = access.axes
        assert not isinstance(first, str)
        rounds = [each for each in rounds if all_hold(access.conditions, each)]
        indices = [index for each in rounds for index in range(first.evaluate(each), last.evaluate(each) + 1)]
        assert all(holds(each, given) for each in claim.when) == bool(indices), given
        if indices:
            (use,) = claim.uses
            ends = min(each.evaluate(given) for each in use.lowest), max(each.evaluate(given) for each in use.highest)
            assert ends == (min(indices), max(indices)), given


AROUND_0 = [{"a": a, "b": b} for a in range(-2, 2) for b in range(-1, 4)]
ROUNDS = ("0", "b", "i", "i + a", "min(i, b)", "max(i - 1, a)")


@pytest.mark.parametrize("first", ROUNDS)
@pytest.mark.parametrize("last", ROUNDS)
@pytest.mark.parametrize("index", ["i - 2*j", "a*i + j", "int_floor(j + i, 2)"])
@pytest.mark.parametrize("condition", [None, "j < i + b", "i == j"])
def test_what_loops_in_loops_reach(first: str, last: str, index: str, condition: str | None) -> None:
    loops = (BoundedLoop("i", read("a"), read("b")), BoundedLoop("j", read(first), read(last)))
    scope = Scope({name: symbol(name) for name in "abij"}, {})
    limits = () if condition is None else conditions.stated(condition, scope)
    assert limits is not None
    access = Reached("vn", loops, limits, ((read(index),) * 2,))
    if (made := _claim(access)) is not None:
        check_reached(access, made, AROUND_0)
    else:  # rises and falls
        assert "m" in first + last or index in ("i - 2*j", "a*i + j")


@pytest.mark.parametrize("steps", [("0", "b", 2), ("a", "b - 1", 3), ("b", "a", -2), ("b + a", "0", -3), ("a", "a", 5)])
@pytest.mark.parametrize("last", ["i", "i + 1", "b - i"])
@pytest.mark.parametrize(
    "condition", [None, "i < a", "a <= i", "i == a", "i != 1", "i > 2*j", "b > 3*i - a", "j == 2*i"]
)
def test_what_loops_with_steps_reach(steps: tuple[str, str, int], last: str, condition: str | None) -> None:
    first, stop, step = steps
    given = Scope({name: symbol(name) for name in "ab"}, {})
    scope = given.inside({"i": (read(first), read(stop), step, "int32")})
    scope = scope.inside({"j": (read("0"), read("2"), 1, "int32")})
    limits = () if condition is None else conditions.stated(condition, scope)
    ends = scope.values(("i - 1", last))
    assert limits is not None
    assert ends is not None
    access = Reached("vn", scope.loops, limits, (ends,))
    every = cases(access)
    assert every is not None
    for each in every:
        if (made := _claim(each)) is not None:
            check_reached(each, made, AROUND_0)
        else:
            assert condition in ("i > 2*j", "j == 2*i")


def test_an_access_may_have_the_same_number_of_elements_in_each_round() -> None:
    i = BoundedLoop("i", read("a"), read("b - 1"))
    found = reached("i", "i + c", i)
    assert found is not None
    is_not_empty = [Condition(read("a"), "<", read("b")), Condition(read("0"), "<", read("c + 1"))]
    assert normalized(found.when) == normalized(is_not_empty)
    assert found.uses == (Use("vn", 0, (read("a"),), (read("b + c - 1"),)),)


# --- Whole SDFGs ------------------------------------------------------------------------------------------------------


def test_sdfgs_that_refer_to_nothing_make_no_claims() -> None:
    nodes = [node(0, "AccessNode", data="A"), node(1, "AccessNode", data="B")]
    found = bounds({"A": array("1")}, nodes, [edge(0, 1, "A", "0")])
    assert found == Bounds(0, (), (Unknown("A", "in a form that is not read", 1),))


def test_a_variable_may_be_multiplied_with_an_argument() -> None:
    loops = [BoundedLoop("a", read("1"), read("b"))]
    assert extreme(read("c - 2*a"), loops, "min") == read("c - 2*b")
    assert extreme(read("a*c"), loops, "max") == read("max(c, b*c)")
    assert extreme(read("a*a"), loops, "max") is None


# --- Simplification ---------------------------------------------------------------------------------------------------


def _expression(draw: random.Random, depth: int = 2) -> Expression:
    if depth and draw.random() < 0.3:
        which = draw.choice(("min", "max"))
        return extremum(which, [_expression(draw, depth - 1) for _ in range(2)]) + draw.randint(-2, 2)  # type: ignore[arg-type]
    made = Expression(draw.randint(-3, 3))
    for name in draw.sample(NAMES[:3], draw.randint(0, 2)):
        made += symbol(name) * draw.choice((1, 1, -1))
    return made


def _condition(draw: random.Random) -> Condition:
    return Condition(_expression(draw), draw.choice(("<", "<", "==", "!=")), _expression(draw))  # type: ignore[arg-type]


def _plus(draw: random.Random) -> Expression:
    return draw.choice((Expression(), symbol("c")))


def _follow(draw: random.Random) -> Follow:
    ends, columns = ((symbol("a"),), (symbol("b"),)), (draw.randint(0, 3),)
    return Follow("t", *ends, columns, _plus(draw), draw.choice((True, False)), draw.choice("xy"), 0)


def _claims(draw: random.Random) -> list[Claim]:
    when = [_condition(draw) for _ in range(2)]
    return [
        Claim(
            tuple(draw.sample(when, draw.randint(0, 2))),
            tuple(
                Use(draw.choice("xy"), draw.randint(0, 1), (_expression(draw),), (_expression(draw),))
                for _ in range(draw.randint(0, 3))
            ),
            tuple(_follow(draw) for _ in range(draw.randint(0, 2))),
        )
        for _ in range(draw.randint(1, 4))
    ]


def said(claims: Iterable[Claim], values: Mapping[str, int]) -> tuple[dict[Any, tuple[int, int]], set[Any]]:
    """All that claims say of a call: the ends of each axis, and each element of a table that is used as an index."""
    ends: dict[Any, tuple[int, int]] = {}
    followed = set()
    for claim in claims:
        if not all(holds(each, values) for each in claim.when):
            continue
        for use in claim.uses:
            low = min(each.evaluate(values) for each in use.lowest)
            high = max(each.evaluate(values) for each in use.highest)
            before = ends.get((use.array, use.axis), (low, high))
            ends[use.array, use.axis] = min(low, before[0]), max(high, before[1])
        for each in claim.follows:
            rows = range(min(x.evaluate(values) for x in each.first), max(x.evaluate(values) for x in each.last) + 1)
            plus = each.plus.evaluate(values)
            skips = {True} if each.skips else {True, False}  # what does not skip -1 demands more
            followed |= set(itertools.product([each.table], rows, each.columns, [plus], [each.array], skips))
    return ends, followed


@pytest.mark.parametrize("seed", range(40))
def test_simplified_claims_decide_as_all_claims_do(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(10):
        raw = _claims(draw)
        merged: dict[Any, Claim] = {}
        for claim in raw:
            when = normalized(claim.when)
            if when is not None:
                before = merged.get(when, Claim(when, (), ()))
                merged[when] = Claim(when, (*before.uses, *claim.uses), (*before.follows, *claim.follows))
        found = simplified(merged.values(), {"x": ("n", "n"), "y": ("n", "n")})
        for _ in range(20):
            values = {name: draw.randint(-4, 4) for name in NAMES} | {"n": 99}
            assert said(found, values) == said(raw, values)


def test_simplified_claims_are_few() -> None:
    below = Condition(symbol("a"), "<", symbol("b"))
    shapes = {"x": ("n", "4")}
    always = Claim((), (Use("x", 0, (read("a - 1"),), (read("b + 1"),)),), ())
    sometimes = Claim((below,), (Use("x", 0, (read("a"),), (read("b"),)), Use("x", 1, (read("0"),), (read("3"),))), ())
    assert simplified([sometimes, always], shapes) == (always,)
    longer = dataclasses.replace(sometimes, uses=(Use("x", 0, (read("a"),), (read("b + 2"),)),))
    assert simplified([longer, always], shapes) == (always, longer)


def test_conditions_that_always_hold_are_left_out() -> None:
    below = Condition(symbol("a"), "<", symbol("b"))
    assert normalized([below, Condition(read("a - 1"), "<", read("a")), below]) == (below,)
    assert normalized([Condition(read("a - b"), "<", read("0"))]) == (below,)
    assert normalized([below, Condition(read("a"), "<", read("a"))]) is None
    assert normalized([Condition(read("a"), "<", read("min(b, c)"))]) == (
        below,
        Condition(symbol("a"), "<", symbol("c")),
    )
    assert normalized([Condition(read("0"), "<", read("max(0, b - a)"))]) == (below,)
    assert normalized([Condition(read("0"), "!=", read("0"))]) is None
    assert normalized([Condition(read("1"), "==", read("1"))]) == ()


# --- Forms that make no claim -----------------------------------------------------------------------------------------


def bounds(arrays: Mapping[str, Any], nodes: list[Any], edges: list[Any]) -> Bounds:
    state = {"id": 0, "type": "SDFGState", "nodes": nodes, "edges": edges}
    return bounds_of(sdfg(arrays, state), {"n": "int32", "m": "int32"}, has_domains=True)


def test_an_element_that_is_read_is_known() -> None:
    found = bounds({"A": array("n")}, READ, [edge(0, 1, "A", "m")])
    assert found == Bounds(1, (Claim((), (Use("A", 0, (read("m"),), (read("m"),)),), ()),), ())


def test_edges_without_data_are_left_out() -> None:
    assert bounds({"A": array("n")}, READ, [edge(0, 1)]) == Bounds(0, (), ())


def test_containers_with_an_offset_are_not_known() -> None:
    found = bounds({"A": array("n", offset=["-2"])}, READ, [edge(0, 1, "A", "m")])
    assert found == Bounds(0, (), (Unknown("A", "in a form that is not read", 1),))
    assert bounds({"A": array("n", offset=["0"])}, READ, [edge(0, 1, "A", "m")]).known == 1


def test_what_is_written_to_a_view_is_not_known() -> None:
    arrays = {"B": array("n"), "v": {**array("16", transient=True), "type": "ArrayView"}}
    nodes = [node(0, "Tasklet", code={}), node(1, "AccessNode", data="v"), node(2, "AccessNode", data="B")]
    edges = [edge(0, 1, "v", "3"), edge(1, 2, "B", "2:17", ("views", ""))]
    assert bounds(arrays, nodes, edges).claims == ()


def test_what_is_read_through_a_reference_is_not_known() -> None:
    arrays = {"A": array("n"), "r": {**array("20", transient=True), "type": "ArrayReference"}}
    nodes = [node(0, "AccessNode", data="A"), node(1, "AccessNode", data="r")]
    found = bounds(arrays, nodes, [edge(0, 1, "A", "0:19", ("", "set"))])
    assert found == Bounds(0, (), (Unknown("A", "in a form that is not read", 1),))


@pytest.mark.parametrize("assignments", [{}, {"i": "i + n"}])
def test_loops_whose_body_changes_their_variable_are_not_known(assignments: Mapping[str, str]) -> None:
    texts = {"init_statement": "i = 0", "loop_condition": "i < n", "update_statement": "i = i + 1"}
    attributes = {name: {"string_data": text} for name, text in texts.items()}
    first = {"id": 0, "type": "SDFGState", "nodes": READ, "edges": [edge(0, 1, "A", "i")]}
    loop = {
        "id": 0,
        "type": "LoopRegion",
        "attributes": {**attributes, "loop_variable": "i"},
        "nodes": [first, {"id": 1, "type": "SDFGState", "nodes": [], "edges": []}],
        "edges": [transition(0, 1, **assignments)],
    }
    found = bounds_of(sdfg({"A": array("n")}, loop), {"n": "int32"}, has_domains=True)
    assert (found.known, len(found.unknown)) == ((0, 1) if assignments else (1, 0))


@pytest.mark.parametrize(
    ("update", "start", "condition", "expected"),
    [
        ("i = (i + (- 1))", "i = (n - 1)", "(i > (- 1))", ("0 < n", "0", "n - 1")),
        ("i = (i + (- 2))", "i = (n - 1)", "(i > (- 1))", ("0 < n", "n - 2*int_floor(n + 1, 2) + 1", "n - 1")),
        ("i = i + 3", "i = m", "i < n", ("m < n", "m", "3*int_floor(n - m + 2, 3) + m - 3")),
    ],
)
def test_loops_with_other_steps(update: str, start: str, condition: str, expected: tuple[str, str, str]) -> None:
    texts = {"init_statement": start, "loop_condition": condition, "update_statement": update}
    attributes = {name: {"string_data": text} for name, text in texts.items()}
    state = {"id": 0, "type": "SDFGState", "nodes": READ, "edges": [edge(0, 1, "A", "i")]}
    loop = {"id": 0, "type": "LoopRegion", "attributes": {**attributes, "loop_variable": "i"}, "nodes": [state]}
    made = sdfg({"A": array("s")}, {**loop, "edges": []})
    found = bounds_of(made, {"n": "int32", "m": "int32"}, has_domains=False)
    ((when, use),) = [(str(claim.when[0]), *claim.uses) for claim in found.claims]
    assert (when, use.lowest, use.highest) == (expected[0], (read(expected[1]),), (read(expected[2]),))
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("row", "column", "is_known"),
    [
        ("i", "0", True),
        ("i + j", "0", True),
        ("2*i", "0", False),
        ("i", "j", True),
        ("i", "2*j", False),
        ("i", "i", False),
    ],
)
def test_rows_and_columns_that_are_left_out_are_not_claimed(row: str, column: str, is_known: bool) -> None:
    ranges = (BoundedLoop("i", read("0"), read("7")), BoundedLoop("j", read("0"), read("1")))
    lookup = Lookup("gt_conn_X", read(row), read(column), read("0"), skips=True)
    assert (_claim(Reached("A", ranges, (), (lookup,))) is not None) == is_known


def test_expressions_beyond_the_limits_of_signatures_are_not_claimed() -> None:
    large = read("65536*n") * 65536
    assert _claim(Reached("A", (), (), ((read("n"), read("n")),))) is not None
    assert _claim(Reached("A", (), (), ((large * 65536, large * 65536),))) is None


def test_conditions_that_contradict_each_other_leave_ends() -> None:
    when = (Condition(read("a"), "<", read("b")), Condition(read("b"), "<", read("a")))
    uses = (Use("A", 0, (read("a"),), (read("c"),)), Use("A", 0, (read("b"),), (read("c"),)))
    (claim,) = simplified([Claim(when, uses, ())], {"A": ("n",)})
    assert [len(use.lowest) for use in claim.uses] == [2]


def test_sums_of_many_minima_are_left_as_they_are() -> None:
    text = " + ".join(f"min(a{i}, b{i})" for i in range(12))
    uses = (Use("A", 0, (read(text),), (read(text),)),)
    (claim,) = simplified([Claim((), uses, ())], {"A": ("n",)})
    assert claim.uses == uses
