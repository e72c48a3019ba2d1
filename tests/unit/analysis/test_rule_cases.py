"""Rule 11.1 of ADR-18 in two dimensions: the axes of arrays, and the variables of maps that index them."""

from __future__ import annotations

import pytest

from gtstub.stub.sdfg.read import of_document
from gtstub.stub.signature.model import Dimension, FieldType, Parameter, ProgramSignature
from gtstub.tools.rules import check
from tests.support.sdfg_documents import (
    ALL,
    EDGE,
    Edge,
    Json,
    K,
    access,
    map_entry,
    map_exit,
    reading,
    sdfg,
    state,
    tasklet,
    transient,
    writing,
)

CELL = "i_Cell_gtx_horizontal"
STAGGERED = "i__StaggeredK_gtx_vertical"
LEVELS = Dimension("K", "vertical")
PROGRAM = ProgramSignature(
    "program",
    tuple(
        Parameter(name, FieldType("float64", (Dimension(horizontal, "horizontal"), LEVELS)))
        for name, horizontal in (("a", "Edge"), ("b", "Edge"), ("c", "Cell"))
    ),
    (),
    (),
    (),
)


def found(document: Json) -> set[str]:
    findings = check(of_document(document), program=PROGRAM).findings
    return {each.data for each in findings if each.adr == "11.1" and "indexes" in each.message}


@pytest.mark.parametrize(
    ("read", "write", "variables"),
    [
        ((EDGE, K), (EDGE, K), set()),
        ((f"{EDGE} + 1", f"{K} - 1"), (EDGE, K), set()),
        (("0", ALL), (EDGE, K), set()),
        ((K, EDGE), (EDGE, K), {EDGE, K}),
        ((EDGE, K), (K, EDGE), {EDGE, K}),
        ((CELL, K), (EDGE, K), {CELL}),  # another dimension of the same kind
        ((EDGE, STAGGERED), (EDGE, K), set()),
    ],
)
def test_a_variable_indexes_only_axes_of_its_dimension(
    read: tuple[str, str], write: tuple[str, str], variables: set[str]
) -> None:
    nodes = "a", map_entry(EDGE, K, CELL, STAGGERED), tasklet(1), map_exit(1), "b"
    edges = [
        reading(0, 1, "a", ALL, ALL),
        reading(1, 2, "a", *read),
        writing(2, 3, "b", *write),
        writing(3, 4, "b", ALL, ALL),
    ]
    assert found(sdfg(state(*nodes, edges=edges))) == variables


@pytest.mark.parametrize("write", [(EDGE, K), (K, EDGE)])
@pytest.mark.parametrize("data", ["t", "b"])
def test_a_copy_in_a_map_of_what_was_transposed(data: str, write: tuple[str, str]) -> None:
    """The memlet names the transient, or the array of the program."""
    source, target = reading(3, 4, "t", K, EDGE).memlet, writing(3, 4, "b", *write).memlet
    memlet = source | {"other_subset": target["subset"]} if data == "t" else target | {"other_subset": source["subset"]}
    nodes = "a", map_entry(EDGE, K), tasklet(1), access("t", 1), map_exit(1), "b"
    edges = [
        reading(0, 1, "a", ALL, ALL),
        reading(1, 2, "a", EDGE, K),
        writing(2, 3, "t", K, EDGE),
        Edge(3, 4, memlet, "b"),
        writing(4, 5, "b", ALL, ALL),
    ]
    document = sdfg(state(*nodes, edges=edges), arrays={"t": transient()})
    assert found(document) == (set() if write == (EDGE, K) else {EDGE, K})
