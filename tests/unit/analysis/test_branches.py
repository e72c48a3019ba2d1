"""Conditions on edges between blocks, as conditional blocks."""

from __future__ import annotations

from typing import Any

import pytest

from gtstub.analysis.branches import condition, structured
from tests.support.sdfg_documents import edge, state

Edges = tuple[dict[str, Any], ...]


def region(number: int, *edges: dict[str, Any], start: int | None = 0) -> dict[str, Any]:
    return {
        "nodes": [{**state(), "label": f"s{i}", "id": i} for i in range(number)],
        "edges": edges,
        "start_block": start,
    }


def outline(region: Any) -> list[Any]:
    """The numbers of blocks; a conditional block is the mapping of its conditions to its branches."""
    return [
        {(code or {}).get("string_data", "else"): outline(branch) for code, branch in block["branches"]}
        if "branches" in block
        else block["id"]
        for block in structured(region) or ()
    ]


def test_blocks_are_in_the_order_in_which_they_run() -> None:
    assert outline(region(3, edge(2, 0), edge(0, 1), start=2)) == [2, 0, 1]


@pytest.mark.parametrize(
    ("number", "edges", "expected"),
    [
        (4, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 3), edge(2, 3)), [0, {"x": [1], "else": [2]}, 3]),
        (4, (edge(0, 1, "x"), edge(0, 2, "(not (x))"), edge(1, 3), edge(2, 3)), [0, {"x": [1], "(not (x))": [2]}, 3]),
        (4, (edge(0, 1, "(x > 1)"), edge(0, 2), edge(1, 3), edge(2, 3)), [0, {"x > 1": [1], "else": [2]}, 3]),
        (3, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 2)), [0, {"x": [1], "else": []}, 2]),
        (3, (edge(0, 1, "x"), edge(0, 2, "not x")), [0, {"x": [1], "else": [2]}]),
        (
            5,
            (edge(0, 1, "x"), edge(0, 2, "y"), edge(0, 3, "z"), edge(1, 4), edge(2, 4), edge(3, 4)),
            [0, {"x": [1], "y": [2], "z": [3]}, 4],
        ),
        (
            6,
            (
                *(edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 3, "y"), edge(1, 4, "not y")),
                *(edge(3, 5), edge(4, 5), edge(2, 5)),
            ),
            [0, {"x": [1, {"y": [3], "else": [4]}], "else": [2]}, 5],
        ),
    ],
)
def test_branches_are_lifted(number: int, edges: Edges, expected: list[Any]) -> None:
    assert outline(region(number, *edges)) == expected
    assert outline(region(number, *edges, start=None)) == expected
    assert outline(region(number, *edges, start=number - 1)) == expected


@pytest.mark.parametrize(
    ("number", "edges", "start"),
    [
        (3, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 0)), 0),
        (
            5,
            (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 3, "y"), edge(1, 4, "not y"), edge(2, 3)),
            0,
        ),
        (4, (edge(0, 1, "x"), edge(0, 2, "not x")), None),
        (4, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 0), edge(3, 0)), 3),
        (3, (edge(0, 1), edge(1, 2), edge(2, 1)), 0),
        (4, (edge(0, 1), edge(2, 3)), 0),
    ],
    ids=[
        *("a cycle", "a shared block", "several first blocks", "a cycle after the first block"),
        *("a cycle without branches", "blocks that never run"),
    ],
)
def test_other_blocks_have_no_order(number: int, edges: Edges, start: int | None) -> None:
    assert structured(region(number, *edges, start=start)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(a > 1)", "a > 1"), ("(a) > (b)", "(a) > (b)"), ("1", ""), ("True", ""), (" x ", "x"), ("", "")],
)
def test_conditions(text: str, expected: str) -> None:
    assert condition({"string_data": text}) == expected
    assert condition(None) == ""
