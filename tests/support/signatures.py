"""Small signatures that tests share, and short ways to write them."""

from __future__ import annotations

import dataclasses
from typing import Literal

from gtstub.stub.signature import expressions
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, parse
from gtstub.stub.signature.model import (
    Access,
    ArrayArgument,
    Axis,
    Bounds,
    CallbackArgument,
    CallbackType,
    CallbackValue,
    Claim,
    Condition,
    Connectivity,
    Device,
    Dimension,
    FieldType,
    Follow,
    Parameter,
    ProgramSignature,
    Property,
    Requirement,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    Shapes,
    StaticArgument,
    TupleType,
    Type,
    Unknown,
    Use,
    Workspace,
)

CELL = Dimension("Cell", "horizontal")
EDGE = Dimension("Edge", "horizontal")
VERTEX = Dimension("Vertex", "horizontal")
K = Dimension("K", "vertical")
E2V = Dimension("E2V", "local")


def field(*dims: Dimension, dtype: DType = "float64") -> FieldType:
    return FieldType(dtype, dims)


def scalar(dtype: DType) -> ScalarType:
    return ScalarType(dtype)


def tuple_of(*elements: Type) -> TupleType:
    return TupleType(elements)


def collection_of(**elements: Type) -> TupleType:
    return TupleType(tuple(elements.values()), tuple(elements))


def program(name: str = "prog", *connectivities: Connectivity, **parameters: Type) -> ProgramSignature:
    return ProgramSignature(name, tuple(Parameter(n, t) for n, t in parameters.items()), connectivities)


def with_static(signature: ProgramSignature, **values: float) -> ProgramSignature:
    """The same program with leaves compiled in."""
    statics = tuple(StaticArgument(leaf, value) for leaf, value in values.items())
    return dataclasses.replace(signature, static_arguments=statics)


def array(
    name: str,
    *axes: Axis,
    dtype: DType = "float64",
    access: Access = "read",
    device: Device = "cpu",
) -> ArrayArgument:
    return ArrayArgument(name, dtype, device, access, axes)


def symbol(name: str, *roles: tuple[str, int, Property], dtype: DType = "int32") -> ScalarArgument:
    """A scalar without roles is one, too."""
    return ScalarArgument(name, dtype, tuple(Role(*role) for role in roles))


def number(dtype: DType) -> CallbackValue:
    return CallbackValue(dtype)


def numbers(dtype: DType, *shape: str, strides: tuple[str, ...] = ("1",)) -> CallbackValue:
    """An array that a callback takes or returns; sizes and strides are polynomials."""
    return CallbackValue(dtype, tuple(map(polynomial, shape)), tuple(map(polynomial, strides)))


def polynomial(text: str) -> Expression:
    found = expressions.polynomial(text)
    assert found is not None
    return found


def callback(
    name: str, *arguments: CallbackValue, returns: tuple[CallbackValue, ...] = (), is_parallel: bool = False
) -> CallbackArgument:
    return CallbackArgument(name, arguments, returns, is_parallel)


def sdfg(
    *arguments: ArrayArgument | ScalarArgument | CallbackArgument,
    name: str = "prog",
    init: tuple[str, ...] = (),
    memory_symbols: tuple[str, ...] = (),
    workspaces: tuple[Workspace, ...] = (),
    device: Device = "cpu",
    bounds: Bounds | None = None,
    shapes: Shapes | None = None,
) -> SdfgSignature:
    return SdfgSignature(name, device, f"lib{name}.so", arguments, init, memory_symbols, workspaces, bounds, shapes)


def value(text: str) -> Expression:
    found = parse(text)
    assert found is not None
    return found


def use(array: str, axis: int, lowest: str, highest: str) -> Use:
    return Use(array, axis, (value(lowest),), (value(highest),))


def follow(table: str, last: str, array: str = "", *, plus: str = "0", size: str = "", skips: bool = False) -> Follow:
    """The first two columns of a table, in the rows from 0 to `last`, into axis 0 of an array or into a temporary."""
    place = (array, 0) if array else (None, None)
    end = value(size) if size else None
    return Follow(table, (value("0"),), (value(last),), (0, 1), value(plus), skips, *place, end)


NEIGHBORS = Connectivity("E2V", "int32", EDGE, E2V, VERTEX, max_neighbors=2, has_skip_values=False)


# One program with every kind of argument. Its SDFG keeps memory of size __nk and wants a workspace.
WHOLE_PROGRAM = program(
    "whole",
    NEIGHBORS,
    vn=field(EDGE, K),
    x=tuple_of(field(K), tuple_of(scalar("int32"), field(dtype="float32"))),
    flag=scalar("bool"),
    unused=field(VERTEX),
    out=tuple_of(field(EDGE, K), field(EDGE, K)),
)

WHOLE_SDFG = sdfg(
    array("gt_compute_time", Axis(size=1, stride=1), access="write"),
    array("gt_conn_E2V", Axis(stride=1), Axis(size=2), dtype="int32"),
    array("out_0", Axis(stride=1), Axis(), access="write"),
    array("out_1", Axis(stride=1), Axis(), access="readwrite"),
    array("vn", Axis(start=0, stride=1), Axis()),
    array("x_0", Axis(stride=1)),
    symbol("__gt_conn_E2V_neighbor_stride", ("gt_conn_E2V", 1, "stride")),
    symbol("__nk", ("out_0", 1, "size"), ("vn", 1, "size"), ("x_0", 0, "size")),
    symbol("__out_0_K_range_0", ("out_0", 1, "start")),
    symbol("__out_0_K_range_1", ("out_0", 1, "stop")),
    symbol("__out_0_K_stride", ("out_0", 1, "stride")),
    symbol("__out_1_K_stride", ("out_1", 1, "stride")),
    symbol("__vn_Edge_range_1", ("vn", 0, "stop")),
    symbol("__vn_K_stride", ("vn", 1, "stride")),
    symbol("flag", dtype="bool"),
    symbol("gt_metrics_level"),
    symbol("x_1_0"),
    symbol("x_1_1", dtype="float32"),
    name="whole",
    init=("__nk", "flag"),
    memory_symbols=("__nk",),
    workspaces=(Workspace("CPU_Heap", "cpu"),),
    bounds=Bounds(
        known=4,
        claims=(
            Claim((), (use("vn", 0, "0", "1"),), ()),
            Claim(
                (Condition(value("0"), "<", value("__vn_Edge_range_1")), Condition(value("flag"), "!=", value("0"))),
                (
                    use("gt_conn_E2V", 0, "0", "__vn_Edge_range_1 - 1"),
                    use("out_0", 1, "0", "min(x_1_0, __out_0_K_range_1 - 1) - __out_0_K_range_0"),
                ),
                (follow("gt_conn_E2V", "__vn_Edge_range_1 - 1", size="1000"),),
            ),
        ),
        unknown=(Unknown("x_0", "in a branch on data", 2),),
    ),
)


# A program that calls functions of every form. Its SDFG does not take M, on which the size of `split` depends.
CALLING_PROGRAM = program(
    "calling",
    x=field(K),
    y=field(EDGE, K, dtype="float32"),
    a=scalar("float64"),
    now=CallbackType(),
    see=CallbackType(),
    weigh=CallbackType(),
    smooth=CallbackType(),
    split=CallbackType(),
)

CALLING_SDFG = sdfg(
    array("x", Axis(start=0, stride=1), access="readwrite"),
    array("y", Axis(start=0, stride=1), Axis(start=0), dtype="float32"),
    symbol("N", ("x", 0, "size"), ("y", 0, "size"), ("y", 1, "stride")),
    symbol("a", dtype="float64"),
    callback("now", returns=(number("float64"),)),
    callback("see", numbers("float64", "N"), numbers("float32", "N", "M", strides=("1", "N"))),
    callback("smooth", numbers("float64", "2*N + 1", strides=("3",)), returns=(numbers("float64", "N"),)),
    callback("split", number("float64"), returns=(number("int32"), numbers("float32", "4", "M", strides=("M", "1")))),
    callback("weigh", number("float64"), number("int32"), number("bool"), returns=(number("bool"),), is_parallel=True),
    name="calling",
    init=("N", "a", "now", "see", "smooth", "split", "weigh"),
    shapes=Shapes((symbol("M", ("y", 1, "size")),), ()),
)


# A program without init arguments and without surprises.
SMALL_PROGRAM = program(x=field(K), factor=scalar("float64"), out=field(K))

SMALL_SDFG = sdfg(
    array("out", Axis(stride=1), access="write"),
    array("x", Axis(stride=1)),
    symbol("__n", ("out", 0, "size"), ("x", 0, "size")),
    symbol("factor", dtype="float64"),
)


# A program that gathers from vertices by a table in which -1 stands for no neighbor.
GATHER_PROGRAM = program(
    "gather",
    dataclasses.replace(NEIGHBORS, has_skip_values=True),
    x=field(VERTEX),
    out=field(EDGE),
)

GATHER_SDFG = sdfg(
    array("gt_conn_E2V", Axis(), Axis(size=2), dtype="int32"),
    array("out", Axis(stride=1), access="write"),
    array("x", Axis(stride=1)),
    symbol("__gt_conn_E2V_neighbor_stride", ("gt_conn_E2V", 1, "stride")),
    symbol("__gt_conn_E2V_source_stride", ("gt_conn_E2V", 0, "stride")),
    symbol("__out_Edge_range_1", ("out", 0, "stop")),
    symbol("__x_Vertex_range_0", ("x", 0, "start")),
    name="gather",
    bounds=Bounds(
        known=2,
        claims=(
            Claim(
                (Condition(value("0"), "<", value("__out_Edge_range_1")),),
                (use("gt_conn_E2V", 0, "0", "__out_Edge_range_1 - 1"),),
                (follow("gt_conn_E2V", "__out_Edge_range_1 - 1", "x", plus="-__x_Vertex_range_0", skips=True),),
            ),
        ),
        unknown=(),
    ),
)


# The same with a table of 64 bits.
WIDE_GATHER_PROGRAM = dataclasses.replace(
    GATHER_PROGRAM,
    name="wide_gather",
    connectivities=tuple(dataclasses.replace(each, dtype="int64") for each in GATHER_PROGRAM.connectivities),
)

WIDE_GATHER_SDFG = dataclasses.replace(
    GATHER_SDFG,
    name="wide_gather",
    library="libwide_gather.so",
    arguments=tuple(
        dataclasses.replace(each, dtype="int64") if each.name == "gt_conn_E2V" else each
        for each in GATHER_SDFG.arguments
    ),
)


# A program that uses the last three of the four columns of its table, and the first one if it is told to, in some rows.
PART_GATHER_PROGRAM = program(
    "part_gather",
    dataclasses.replace(NEIGHBORS, max_neighbors=4),
    x=field(VERTEX),
    start=scalar("int32"),
    stop=scalar("int32"),
    all_columns=scalar("int32"),
)

_ROWS = dataclasses.replace(follow("gt_conn_E2V", "stop - 1", "x"), first=(value("start"),))

PART_GATHER_SDFG = sdfg(
    array("gt_conn_E2V", Axis(), Axis(size=4), dtype="int32"),
    array("x", Axis(start=0, stride=1)),
    symbol("__gt_conn_E2V_neighbor_stride", ("gt_conn_E2V", 1, "stride")),
    symbol("__gt_conn_E2V_source_stride", ("gt_conn_E2V", 0, "stride")),
    symbol("all_columns"),
    symbol("start"),
    symbol("stop"),
    name="part_gather",
    bounds=Bounds(
        known=2,
        claims=(
            Claim((), (), (dataclasses.replace(_ROWS, columns=(1, 2, 3)),)),
            Claim((Condition(value("0"), "<", value("all_columns")),), (), (dataclasses.replace(_ROWS, columns=(0,)),)),
        ),
        unknown=(),
    ),
)


# A program that uses elements of a table as indices that are checked in some rows of it, and as others in more rows.
MIXED_GATHER_PROGRAM = program(
    "mixed_gather",
    dataclasses.replace(NEIGHBORS, max_neighbors=70),
    dataclasses.replace(NEIGHBORS, name="always", max_neighbors=70),
    x=field(VERTEX),
    checked=scalar("int32"),
    start=scalar("int32"),
    stop=scalar("int32"),
)

MIXED_GATHER_SDFG = sdfg(
    *(array(f"gt_conn_{each}", Axis(), Axis(size=70), dtype="int32") for each in ("E2V", "always")),
    array("x", Axis(start=0, stride=1)),
    *(symbol(f"__gt_conn_{each}_source_stride", (f"gt_conn_{each}", 0, "stride")) for each in ("E2V", "always")),
    symbol("checked"),
    symbol("start"),
    symbol("stop"),
    name="mixed_gather",
    bounds=Bounds(
        known=4,
        claims=(
            Claim((), (use("gt_conn_always", 0, "20", "49"),), ()),
            Claim(
                (Condition(value("0"), "<", value("checked")),),
                (use("gt_conn_E2V", 0, "0", "checked - 1"),),
                (follow("gt_conn_E2V", "checked - 1", "x"), follow("gt_conn_always", "9", "x")),
            ),
            Claim((Condition(value("start"), "<", value("stop")),), (use("gt_conn_E2V", 0, "start", "stop - 1"),), ()),
        ),
        unknown=(),
    ),
)


# A program that uses some rows of a table, and those that are elements of another table.
CHAINED_GATHER_PROGRAM = dataclasses.replace(MIXED_GATHER_PROGRAM, name="chained_gather")

CHAINED_GATHER_SDFG = dataclasses.replace(
    MIXED_GATHER_SDFG,
    name="chained_gather",
    library="libchained_gather.so",
    bounds=Bounds(
        known=3,
        claims=(
            Claim(
                (),
                (),
                (
                    follow("gt_conn_E2V", "checked - 1", "x"),
                    follow("gt_conn_always", "9", "x"),
                    follow("gt_conn_always", "9", "gt_conn_E2V"),
                ),
            ),
        ),
        unknown=(),
    ),
)


# A program of DaCe itself: sizes are polynomials of symbols, of which the SDFG does not take T; L has 64 bits.
SHAPES_PROGRAM = program(
    "shapes",
    a=field(K),
    edges=field(K),
    twice=field(K),
    table=field(K),
    odd=field(K),
    wide=field(K),
    f=field(K, CELL),
    g=field(K, CELL),
    M=scalar("int32"),
)


def requirement(array: str, axis: int, property_: Literal["size", "stride"], value: str) -> Requirement:
    return Requirement(array, axis, property_, polynomial(value))


SHAPES_SDFG = dataclasses.replace(
    sdfg(
        array("a", Axis(start=0, stride=1)),
        array("edges", Axis(start=0, stride=1)),
        array("f", Axis(start=0), Axis(start=0, size=2, stride=1)),
        array("g", Axis(start=0), Axis(start=0, size=2, stride=1), access="write"),
        array("odd", Axis(start=0, stride=1)),
        array("table", Axis(start=0, stride=1)),
        array("twice", Axis(start=0, stride=1)),
        array("wide", Axis(start=0, stride=0)),
        symbol("H"),
        symbol("L", ("wide", 0, "size"), dtype="int64"),
        symbol("M"),
        symbol("N", ("a", 0, "size")),
        name="shapes",
    ),
    shapes=Shapes(
        symbols=(symbol("T", ("f", 0, "size"), ("g", 0, "size")),),
        requirements=(
            requirement("edges", 0, "size", "N + 1"),
            requirement("twice", 0, "size", "2*N"),
            requirement("table", 0, "size", "M*N"),
            requirement("odd", 0, "size", "2*H + 1"),
            requirement("f", 0, "stride", "N + T"),
            requirement("g", 0, "stride", "2*M"),
        ),
    ),
)


def on_gpu(signature: SdfgSignature) -> SdfgSignature:
    """The same with all arrays on a GPU."""
    arguments = [
        dataclasses.replace(one, device="cuda") if isinstance(one, ArrayArgument) else one
        for one in signature.arguments
    ]
    return dataclasses.replace(signature, device="cuda", arguments=tuple(arguments))
