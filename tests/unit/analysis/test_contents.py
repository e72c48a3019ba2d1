"""What a call is sure to overwrite, and what it may read: forms of SDFGs that DaCe's own programs seldom have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from gtstub.programs.contents import Contents, contents
from gtstub.stub.sdfg.model import Container, Edge, Node, Range, Sdfg, State, Subset
from gtstub.stub.signature.dtypes import DType

SIZE = 8
WHOLE = (slice(0, SIZE),)


def array(*shape: str, is_transient: bool = False) -> Container:
    strides = ("1",) if len(shape) == 1 else (shape[1], "1")
    return Container("Array", "float64", shape, strides, "", "Default", "Scope", is_transient, has_offset=False)


def subset(*indices: str) -> Subset:
    """Each index is one index, or 'first:last'."""
    ends = (index.partition(":") for index in indices)
    return Subset(tuple(Range(first, last or first) for first, _, last in ends))


def edge(src: int, dst: int, data: str, part: Subset | None, connectors: Sequence[str | None] = (None, None)) -> Edge:
    return Edge(src, dst, *connectors, data, part, None, None, is_dynamic=False, is_wcr=False)


def sdfg(nodes: Sequence[Node], edges: Sequence[Edge], **containers: Container) -> Sdfg:
    state = State(0, "SDFGState", "state", {node.id: node for node in nodes}, tuple(edges))
    return Sdfg(0, "SDFG", "", {0: state}, (), 0, "test", containers)


def access(number: int, container: str) -> Node:
    return Node(number, "AccessNode", container, None, "Default", container)


def tasklet(code: str, entry: int | None = None, language: str = "Python") -> Node:
    return Node(1, "Tasklet", "tasklet", entry, "Default", code=code, language=language)


def written(code: str, index: str, language: str = "Python") -> Sdfg:
    """An SDFG that writes A[index] in a tasklet in a map over i from `first` to `last`."""
    nodes = [
        Node(0, "MapEntry", "map", None, "Default", variables=("i",), ranges=subset("first:last")),
        tasklet(code, 0, language),
        Node(2, "MapExit", "map", 0, "Default"),
        access(3, "A"),
    ]
    edges = [
        edge(1, 2, "A", subset(index), ("out", "IN_A")),
        edge(2, 3, "A", subset("first:last"), ("OUT_A", None)),
    ]
    return sdfg(nodes, edges, A=array("8"))


SCALARS: Mapping[str, DType] = {"first": "int32", "last": "int32"}


def found(it: Sdfg, name: str = "A", sizes: Sequence[int] = (SIZE,), **values: int) -> Contents:
    return contents(it, SCALARS, values, {name: sizes})[name]


def test_a_map_over_all_elements() -> None:
    assert found(written("out = 1.0", "i"), first=0, last=7) == Contents((WHOLE,))
    assert found(written("out = 1.0", "i"), first=2, last=3) == Contents(((slice(2, 4),),))
    assert found(written("out = 1.0", "7 - i"), first=0, last=1) == Contents(((slice(6, 8),),))


def test_an_array_that_has_another_name_in_the_sdfg() -> None:
    it = written("out = 1.0", "i")
    assert found(it, "member", first=0, last=7) == Contents(read=(WHOLE,))
    it = dataclasses.replace(it, containers={"A": array("8", is_transient=True)})
    assert found(it, first=0, last=7) == Contents(read=(WHOLE,))


def test_a_map_that_is_empty_or_not_known() -> None:
    assert found(written("out = 1.0", "i"), first=3, last=2) == Contents()
    assert found(written("out = 1.0", "i"), first=0) == Contents()


@pytest.mark.parametrize("index", ["2*i", "i + 6", "i - 2", "i + unknown", "unknown"])
def test_an_index_that_leaves_out_elements_or_leaves_the_array(index: str) -> None:
    assert found(written("out = 1.0", index), first=1, last=3).overwritten == ()
    assert found(written("out = 1.0", "i + last"), first=1, last=3).overwritten == ((slice(4, 7),),)


@pytest.mark.parametrize(
    ("code", "language"), [("if i > 3: out = 1.0", "Python"), ("out[0] = 1.0", "Python"), ("out = 1.0;", "CPP")]
)
def test_a_tasklet_that_may_not_write(code: str, language: str) -> None:
    assert found(written(code, "i", language), first=0, last=7) == Contents(read=(WHOLE,))


def test_a_variable_for_two_axes() -> None:
    """Only the diagonal is written."""
    nodes = [
        Node(0, "MapEntry", "map", None, "Default", variables=("i",), ranges=subset("0:7")),
        tasklet("out = 1.0", 0),
        Node(2, "MapExit", "map", 0, "Default"),
        access(3, "A"),
    ]
    edges = [edge(1, 2, "A", subset("i", "i"), ("out", "IN_A")), edge(2, 3, "A", subset("0:7", "0:7"), ("OUT_A", None))]
    it = sdfg(nodes, edges, A=array("8", "8"))
    assert found(it, sizes=(SIZE, SIZE)) == Contents()


def test_a_copy() -> None:
    it = sdfg(
        [access(0, "B"), access(1, "A")],
        [Edge(0, 1, None, None, "B", subset("0:5"), subset("2:7"), True, is_dynamic=False, is_wcr=False)],
        A=array("8"),
        B=array("8"),
    )
    assert found(it) == Contents(((slice(2, 8),),))
    assert found(it, "B") == Contents(read=((slice(0, 6),),))
    state = it.blocks[0]
    assert isinstance(state, State)
    combined = dataclasses.replace(state, edges=(dataclasses.replace(state.edges[0], is_wcr=True),))
    assert found(dataclasses.replace(it, blocks={0: combined})) == Contents(read=((slice(2, 8),),))


def nested(*, reads: Subset | None, is_wcr: bool = False) -> Sdfg:
    """An SDFG that is nested, and overwrites all of A. It may also read a part of it first."""
    reading = [] if reads is None else [edge(3, 4, "X", subset("0"), (None, "in_"))]
    inner = sdfg(
        [access(0, "X"), access(3, "X"), Node(4, "Tasklet", "reader", None, "Default", code="y = in_"), access(5, "B")],
        [
            Edge(5, 0, None, None, "B", subset("0:7"), subset("0:7"), True, is_dynamic=False, is_wcr=False),
            *reading,
        ],
        X=array("8"),
        B=array("8", is_transient=True),
    )
    node = Node(1, "NestedSDFG", "nested", None, "Default", sdfg=inner)
    edges = [dataclasses.replace(edge(1, 2, "A", subset("0:7"), ("X", None)), is_wcr=is_wcr)]
    if reads is not None:
        edges.append(edge(0, 1, "A", reads, (None, "X")))
    return sdfg([access(0, "A"), node, access(2, "A")], edges, A=array("8"))


def test_a_nested_sdfg() -> None:
    assert found(nested(reads=None)) == Contents((WHOLE,))
    assert found(nested(reads=subset("0:7"))) == Contents((WHOLE,), ((slice(0, 1),),))


def test_a_nested_sdfg_whose_input_and_output_differ() -> None:
    """Where it reads is not known."""
    assert WHOLE in found(nested(reads=subset("4:7"))).read


def test_a_nested_sdfg_whose_result_is_combined_with_what_is_there() -> None:
    assert found(nested(reads=None, is_wcr=True)) == Contents(read=(WHOLE,))


def test_an_sdfg_of_unknown_form() -> None:
    it = sdfg([access(0, "A"), Node(1, "ConsumeEntry", "", None, "Default")], [edge(0, 1, "A", None)], A=array("8"))
    assert found(it) == Contents(read=(WHOLE,))
    assert contents(it, SCALARS, {}, {"A": (SIZE, 2)})["A"].read == ((slice(0, SIZE), slice(0, 2)),)
