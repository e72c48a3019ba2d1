"""The values of symbols, from sizes of dimensions."""

from __future__ import annotations

import dataclasses

import pytest

from gtstub.stub.signature.model import Axis, Connectivity, ProgramSignature, Shapes, StaticDomain
from gtstub.tools.memory.sizes import SizeError, known_dimensions, symbol_sizes
from tests.support.signatures import (
    CELL,
    E2V,
    EDGE,
    VERTEX,
    K,
    array,
    field,
    program,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    with_static,
)

TABLE = Connectivity("E2V", "int32", EDGE, E2V, VERTEX, max_neighbors=2, has_skip_values=False)
PROGRAM = program("prog", TABLE, vn=field(EDGE, K), pair=tuple_of(field(CELL), field(K)), end=scalar("int32"))
SDFG = sdfg(
    array("vn", Axis(), Axis()),
    array("pair_0", Axis()),
    array("gt_conn_E2V", Axis(), Axis()),
    symbol("edge_start", ("vn", 0, "start")),
    symbol("edge_stop", ("vn", 0, "stop")),
    symbol("edge_stride", ("vn", 0, "stride")),
    symbol("k_stride", ("vn", 1, "stride")),
    symbol("cells", ("pair_0", 0, "stop")),
    symbol("rows", ("gt_conn_E2V", 0, "size")),
    symbol("row", ("gt_conn_E2V", 0, "stride")),
    symbol("__pair_1_K_range_1"),
    symbol("end"),
)


def with_domain(leaf: str, *ranges: tuple[int, int], of: ProgramSignature = PROGRAM) -> ProgramSignature:
    return dataclasses.replace(of, static_domains=(StaticDomain(leaf, ranges),))


def test_fields_on_a_dimension_have_its_size_and_begin_at_0() -> None:
    assert symbol_sizes(PROGRAM, SDFG, {"Edge": 30, "K": 6, "Cell": 20}, {"end": 29}) == {
        "edge_start": 0,
        "edge_stop": 30,
        "edge_stride": 6,
        "k_stride": 1,
        "cells": 20,
        "rows": 30,
        "row": 2,
        "__pair_1_K_range_1": 6,
        "end": 29,
    }


def test_without_sizes_little_is_known() -> None:
    assert symbol_sizes(PROGRAM, SDFG, {}, {}) == {"k_stride": 1, "row": 2}
    assert symbol_sizes(PROGRAM, SDFG, {"Edge": 30}, {}) == {
        "edge_start": 0,
        "edge_stop": 30,
        "k_stride": 1,
        "rows": 30,
        "row": 2,
    }


def test_given_symbols_come_first() -> None:
    found = symbol_sizes(PROGRAM, SDFG, {"Edge": 30}, {"edge_start": -2, "edge_stride": 64})
    assert (found["edge_start"], found["edge_stop"], found["edge_stride"]) == (-2, 30, 64)


@pytest.mark.parametrize(
    ("axis", "start", "stop"),
    [
        (Axis(start=3), 3, 33),
        (Axis(stop=3), -27, 3),
        (Axis(size=5), 0, 5),
        (Axis(start=1, stop=4), 1, 4),
    ],
)
def test_what_descriptors_fix_is_not_changed(axis: Axis, start: int, stop: int) -> None:
    signature = sdfg(array("vn", axis, Axis()), symbol("start", ("vn", 0, "start")), symbol("stop", ("vn", 0, "stop")))
    assert symbol_sizes(PROGRAM, signature, {"Edge": 30}, {}) == {"start": start, "stop": stop}


def test_what_is_compiled_in_comes_before_sizes() -> None:
    found = symbol_sizes(with_domain("vn", (2, 12), (0, 4)), SDFG, {"Edge": 30}, {})
    assert (found["edge_start"], found["edge_stop"], found["edge_stride"], found["rows"]) == (2, 12, 4, 30)
    static = with_static(PROGRAM, end=7, factor=1.5)
    assert symbol_sizes(static, sdfg(), {}, {}) == {"end": 7}
    # In JSON, a bool is no number.
    (flag,) = symbol_sizes(with_static(program(flag=scalar("bool")), flag=True), sdfg(), {}, {}).values()
    assert flag is not True
    assert flag == 1


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ((Axis(), Axis(stride=1)), (6, 1)),
        ((Axis(stride=1), Axis()), (1, 30)),
        ((Axis(stride=6), Axis()), (6, 1)),
        ((Axis(stride=8), Axis()), (8, None)),
        ((Axis(), Axis(stride=2)), (None, 2)),
    ],
)
def test_arrays_have_no_gaps_unless_the_signature_says_so(
    axes: tuple[Axis, ...], expected: tuple[int | None, ...]
) -> None:
    signature = sdfg(array("vn", *axes), symbol("one", ("vn", 0, "stride")), symbol("two", ("vn", 1, "stride")))
    found = symbol_sizes(PROGRAM, signature, {"Edge": 30, "K": 6}, {})
    assert (found.get("one"), found.get("two")) == expected


def test_gt4py_allocates_vertical_axes_inside_horizontal_ones() -> None:
    signature = sdfg(
        array("a", Axis(), Axis(), Axis()),
        *(symbol(name, ("a", axis, "stride")) for axis, name in enumerate(("k", "e", "n"))),
    )
    found = symbol_sizes(program("prog", TABLE, a=field(K, EDGE, E2V)), signature, {"Edge": 30, "K": 6}, {})
    assert found == {"k": 2, "e": 12, "n": 1}


def test_symbols_of_shapes_are_known() -> None:
    shapes = Shapes((symbol("N", ("vn", 0, "size")),), ())
    assert symbol_sizes(PROGRAM, sdfg(array("vn", Axis(), Axis()), shapes=shapes), {"Edge": 3}, {}) == {"N": 3}


def test_dimensions_of_a_program() -> None:
    assert known_dimensions(PROGRAM) == ["Cell", "Edge", "K", "Vertex"]


@pytest.mark.parametrize(
    ("dimensions", "symbols", "message"),
    [
        ({"edge": 3}, {}, "Program 'prog' has no dimension 'edge'. Did you mean: 'Edge'?"),
        ({"E2V": 3}, {}, "Program 'prog' has no dimension 'E2V'. Known: 'Cell', 'Edge', 'K', 'Vertex'."),
        ({}, {"ende": 3}, "SDFG 'prog' has no symbol 'ende'. Did you mean: 'end'?"),
        ({}, {"vn": 3}, "SDFG 'prog' has no symbol 'vn'."),
    ],
)
def test_unknown_names(dimensions: dict[str, int], symbols: dict[str, int], message: str) -> None:
    with pytest.raises(SizeError) as caught:
        symbol_sizes(PROGRAM, SDFG, dimensions, symbols)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == 2


def test_programs_without_dimensions() -> None:
    with pytest.raises(SizeError, match="It has none: give values of its symbols"):
        symbol_sizes(program("prog", a=scalar("int32")), sdfg(symbol("a")), {"K": 3}, {})
