"""When the blocks of a region run: conditions on edges between blocks, as conditional blocks."""

from __future__ import annotations

from typing import Any

import pytest

from gtstub.stub.sdfg.flow import Steps, flow
from gtstub.stub.sdfg.model import Block, Conditional, Region
from gtstub.stub.sdfg.read import of_document
from tests.support.sdfg_documents import edge, sdfg, state

Edges = tuple[dict[str, Any], ...]


def region(number: int, *edges: dict[str, Any], start: int | None = 0) -> Region:
    return of_document({**sdfg(*(state() for _ in range(number)), edges=edges), "start_block": start})


def outline(steps: Steps) -> list[Any]:
    """The numbers of blocks; a conditional block is the mapping of its conditions to its branches."""
    return [
        {each.condition or "else": outline(each.body) for each in block.branches}
        if isinstance(block, Conditional)
        else block.id
        for block in steps
        if isinstance(block, Block)
    ]


def test_blocks_are_in_the_order_in_which_they_run() -> None:
    assert outline(flow(region(3, edge(2, 0), edge(0, 1), start=2)).steps) == [2, 0, 1]


@pytest.mark.parametrize(
    ("number", "edges", "expected"),
    [
        (4, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 3), edge(2, 3)), [0, {"x": [1], "else": [2]}, 3]),
        (4, (edge(0, 1, "x"), edge(0, 2, "(not (x))"), edge(1, 3), edge(2, 3)), [0, {"x": [1], "else": [2]}, 3]),
        (4, (edge(0, 1, "(x > 1)"), edge(0, 2), edge(1, 3), edge(2, 3)), [0, {"x > 1": [1], "else": [2]}, 3]),
        (3, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 2)), [0, {"x": [1], "else": []}, 2]),
        (3, (edge(0, 1, "x"), edge(0, 2, "not x")), [0, {"x": [1], "else": [2]}]),
        (
            5,
            (edge(0, 1, "x"), edge(0, 2, "y"), edge(0, 3), edge(1, 4), edge(2, 4), edge(3, 4)),
            [0, {"x": [1], "y": [2], "else": [3]}, 4],
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
    for start in (0, None, number - 1):
        found = flow(region(number, *edges, start=start))
        assert (outline(found.steps), found.others) == (expected, ())


def test_edges_are_taken_in_the_branches_that_they_lead_to() -> None:
    made = region(4, edge(0, 1, "x", a="1"), edge(0, 2, "not x", a="2"), edge(1, 3, b="3"), edge(2, 3))
    _, conditional, _ = flow(made).steps
    assert isinstance(conditional, Conditional)
    assert [each.body for each in conditional.branches] == [
        (made.edges[0], made.blocks[1], made.edges[2]),
        (made.edges[1], made.blocks[2], made.edges[3]),
    ]


def test_a_region_ends_where_no_edge_is_taken() -> None:
    made = region(3, edge(0, 1, "x"), edge(1, 2))
    assert outline(flow(made).steps) == [0, {"x": [1, 2]}]
    assert outline(flow(region(3, edge(0, 1, "x"), edge(0, 2, "y"))).steps) == [0, {"x": [1], "y": [2]}]


@pytest.mark.parametrize(
    ("number", "edges", "start", "known", "others"),
    [
        (3, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 0)), 0, [], [0, 1, 2]),
        (
            5,
            (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 3, "y"), edge(1, 4, "not y"), edge(2, 3)),
            0,
            [0, {"x": [1, {"y": [], "else": [4]}], "else": [2]}],
            [3],
        ),
        (4, (edge(0, 1, "x"), edge(0, 2, "not x")), None, [], [0, 1, 2, 3]),
        (4, (edge(0, 1, "x"), edge(0, 2, "not x"), edge(1, 0), edge(3, 0)), 3, [3], [0, 1, 2]),
        (3, (edge(0, 1), edge(1, 2), edge(2, 1)), 0, [0], [1, 2]),
        (4, (edge(0, 1), edge(2, 3)), 0, [0, 1], [2, 3]),
        (4, (edge(0, 1, "x"), edge(0, 2, "y"), edge(1, 3), edge(2, 3)), 0, [0, {"x": [1], "y": [2]}], [3]),
        (
            4,
            (edge(0, 1, "x"), edge(0, 2), edge(1, 3, "y"), edge(2, 3)),
            0,
            [0, {"x": [1, {"y": []}], "else": [2]}],
            [3],
        ),
        (
            5,
            (edge(0, 1, "a"), edge(0, 2, "b"), edge(0, 3, "c"), edge(1, 4), edge(2, 4)),
            0,
            [0, {"a": [1], "b": [2], "c": [3]}],
            [4],
        ),
    ],
    ids=[
        *("a cycle", "a shared block", "several first blocks", "a cycle after the first block"),
        *("a cycle without branches", "blocks that never run", "no branch may run", "a branch may end the region"),
        "two of three branches meet",
    ],
)
def test_of_other_regions_only_a_part_has_an_order(
    number: int, edges: Edges, start: int | None, known: list[Any], others: list[int]
) -> None:
    made = region(number, *edges, start=start)
    found = flow(made)
    assert (outline(found.steps), outline(found.others)) == (known, others)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(a > 1)", "a > 1"), ("(a) > (b)", "(a) > (b)"), ("1", None), ("True", None), (" x ", "x"), ("", None)],
)
def test_conditions(text: str, expected: str | None) -> None:
    assert region(2, edge(0, 1, text)).edges[0].condition == expected
