"""Small gt4py programs, one for each kind of argument that gt4py can pass."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

import dataclasses
from typing import NamedTuple

import gt4py.next as gtx
from gt4py.next import astype, neighbor_sum, where

I = gtx.Dimension("I")
J = gtx.Dimension("J")
H = gtx.Dimension("H")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Vertex = gtx.Dimension("Vertex")
Edge = gtx.Dimension("Edge")
V2EDim = gtx.Dimension("V2E", kind=gtx.DimensionKind.LOCAL)
E2VDim = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
V2E = gtx.FieldOffset("V2E", source=Edge, target=(Vertex, V2EDim))
E2V = gtx.FieldOffset("E2V", source=Vertex, target=(Edge, E2VDim))

Line = gtx.Field[gtx.Dims[I], gtx.float64]
Plane = gtx.Field[gtx.Dims[I, K], gtx.float64]
EdgeK = gtx.Field[gtx.Dims[Edge, K], gtx.float64]
VertexK = gtx.Field[gtx.Dims[Vertex, K], gtx.float64]


# --- Tuples -----------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _nested_tuples(a: tuple[Plane, tuple[Plane, gtx.float64]], b: gtx.float64) -> tuple[Plane, Plane]:
    return a[0] + a[1][0] * b, a[1][0] * a[1][1]


@gtx.program
def nested_tuples(a: tuple[Plane, tuple[Plane, gtx.float64]], b: gtx.float64, out: tuple[Plane, Plane]):
    _nested_tuples(a, b, out=out)


class Wind(NamedTuple):
    u: Plane
    v: Plane


@dataclasses.dataclass
class Coefficients:
    weight: gtx.float64
    wind: Wind


@gtx.field_operator
def _named_collections(wind: Wind, coefficients: Coefficients) -> Plane:
    return wind.u + coefficients.weight * coefficients.wind.v


@gtx.program
def named_collections(wind: Wind, coefficients: Coefficients, out: Plane):
    _named_collections(wind, coefficients, out=out)


# --- Element types ----------------------------------------------------------------------------------------------------


@gtx.field_operator
def _scalars(
    a: Line,
    flag: bool,
    i8: gtx.int8,
    u8: gtx.uint8,
    i16: gtx.int16,
    u16: gtx.uint16,
    i32: gtx.int32,
    u32: gtx.uint32,
    i64: gtx.int64,
    u64: gtx.uint64,
    f32: gtx.float32,
    f64: gtx.float64,
) -> Line:
    b = a + f64 + astype(f32, gtx.float64) + astype(u64, gtx.float64) + astype(i64, gtx.float64)
    b = b + astype(u32, gtx.float64) + astype(i32, gtx.float64) + astype(u16, gtx.float64) + astype(i16, gtx.float64)
    b = b + astype(u8, gtx.float64) + astype(i8, gtx.float64)
    return b if flag else a


@gtx.program
def scalars(
    a: Line,
    flag: bool,
    i8: gtx.int8,
    u8: gtx.uint8,
    i16: gtx.int16,
    u16: gtx.uint16,
    i32: gtx.int32,
    u32: gtx.uint32,
    i64: gtx.int64,
    u64: gtx.uint64,
    f32: gtx.float32,
    f64: gtx.float64,
    out: Line,
):
    _scalars(a, flag, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, out=out)


@gtx.field_operator
def _field_dtypes(
    flag: gtx.Field[gtx.Dims[I], bool],
    i8: gtx.Field[gtx.Dims[I], gtx.int8],
    u8: gtx.Field[gtx.Dims[I], gtx.uint8],
    i16: gtx.Field[gtx.Dims[I], gtx.int16],
    u16: gtx.Field[gtx.Dims[I], gtx.uint16],
    i32: gtx.Field[gtx.Dims[I], gtx.int32],
    u32: gtx.Field[gtx.Dims[I], gtx.uint32],
    i64: gtx.Field[gtx.Dims[I], gtx.int64],
    u64: gtx.Field[gtx.Dims[I], gtx.uint64],
    f32: gtx.Field[gtx.Dims[I], gtx.float32],
) -> Line:
    a = astype(f32, gtx.float64) + astype(u64, gtx.float64) + astype(i64, gtx.float64)
    a = a + astype(u32, gtx.float64) + astype(i32, gtx.float64) + astype(u16, gtx.float64) + astype(i16, gtx.float64)
    a = a + astype(u8, gtx.float64) + astype(i8, gtx.float64)
    return where(flag, a, -a)


@gtx.program
def field_dtypes(
    flag: gtx.Field[gtx.Dims[I], bool],
    i8: gtx.Field[gtx.Dims[I], gtx.int8],
    u8: gtx.Field[gtx.Dims[I], gtx.uint8],
    i16: gtx.Field[gtx.Dims[I], gtx.int16],
    u16: gtx.Field[gtx.Dims[I], gtx.uint16],
    i32: gtx.Field[gtx.Dims[I], gtx.int32],
    u32: gtx.Field[gtx.Dims[I], gtx.uint32],
    i64: gtx.Field[gtx.Dims[I], gtx.int64],
    u64: gtx.Field[gtx.Dims[I], gtx.uint64],
    f32: gtx.Field[gtx.Dims[I], gtx.float32],
    out: Line,
):
    _field_dtypes(flag, i8, u8, i16, u16, i32, u32, i64, u64, f32, out=out)


# --- Dimensions and domains -------------------------------------------------------------------------------------------


@gtx.field_operator
def _dimensions(
    zero: gtx.Field[gtx.Dims[()], gtx.float64],
    one: gtx.Field[gtx.Dims[K], gtx.float64],
    two: gtx.Field[gtx.Dims[I, J], gtx.float64],
    three: gtx.Field[gtx.Dims[I, J, K], gtx.float64],
    four: gtx.Field[gtx.Dims[H, I, J, K], gtx.float64],
) -> gtx.Field[gtx.Dims[H, I, J, K], gtx.float64]:
    return four + three * one + two * zero


@gtx.program
def dimensions(
    zero: gtx.Field[gtx.Dims[()], gtx.float64],
    one: gtx.Field[gtx.Dims[K], gtx.float64],
    two: gtx.Field[gtx.Dims[I, J], gtx.float64],
    three: gtx.Field[gtx.Dims[I, J, K], gtx.float64],
    four: gtx.Field[gtx.Dims[H, I, J, K], gtx.float64],
    out: gtx.Field[gtx.Dims[H, I, J, K], gtx.float64],
):
    _dimensions(zero, one, two, three, four, out=out)


@gtx.field_operator
def average(a: Plane, b: Plane) -> Plane:
    return 0.5 * (a + b)


@gtx.program
def implicit_domain(a: Plane, b: Plane, out: Plane):
    average(a, b, out=out)


@gtx.program
def explicit_domain(
    a: Plane, b: Plane, out: Plane, i_start: gtx.int32, i_end: gtx.int32, k_start: gtx.int32, k_end: gtx.int32
):
    average(a, b, out=out, domain={I: (i_start, i_end), K: (k_start, k_end)})


@gtx.program
def in_place(a: Plane, b: Plane):
    average(a, b, out=a)


@gtx.scan_operator(axis=K, forward=True, init=0.0)
def _integral(state: gtx.float64, a: gtx.float64) -> gtx.float64:
    return state + a


@gtx.program
def scan(a: Plane, out: Plane):
    _integral(a, out=out)


@gtx.field_operator
def _parameters_left_out(a: Plane, factor: gtx.float64, unused: Plane, pair: tuple[Plane, gtx.float64]) -> Plane:
    return a * factor


@gtx.program
def parameters_left_out(
    a: Plane, factor: gtx.float64, unused: Plane, pair: tuple[Plane, gtx.float64], also_unused: gtx.int32, out: Plane
):
    _parameters_left_out(a, factor, unused, pair, out=out)


@gtx.field_operator
def _static_arguments(a: Line, weights: tuple[gtx.float64, gtx.float64], exponent: gtx.int32, flag: bool) -> Line:
    return a * weights[0] + weights[1] if flag else a * astype(exponent, gtx.float64)


@gtx.program
def static_arguments(a: Line, weights: tuple[gtx.float64, gtx.float64], exponent: gtx.int32, flag: bool, out: Line):
    _static_arguments(a, weights, exponent, flag, out=out)


# --- Unstructured grids -----------------------------------------------------------------------------------------------


@gtx.field_operator
def _gather(a: EdgeK, weights: gtx.Field[gtx.Dims[Vertex, V2EDim], gtx.float64]) -> VertexK:
    return neighbor_sum(a(V2E) * weights, axis=V2EDim)


@gtx.program
def gather(a: EdgeK, weights: gtx.Field[gtx.Dims[Vertex, V2EDim], gtx.float64], out: VertexK):
    _gather(a, weights, out=out)


@gtx.field_operator
def _two_stages(a: EdgeK, factor: gtx.float64) -> EdgeK:
    at_vertices = neighbor_sum(a(V2E), axis=V2EDim) * factor
    return at_vertices(E2V[0]) - at_vertices(E2V[1])


@gtx.program
def two_stages(a: EdgeK, factor: gtx.float64, out: EdgeK):
    _two_stages(a, factor, out=out)


@gtx.field_operator
def _vertical_shift(a: Plane) -> Plane:
    return a(K + 1) - a


@gtx.program
def vertical_shift(a: Plane, out: Plane, k_end: gtx.int32, i_end: gtx.int32):
    _vertical_shift(a, out=out, domain={I: (0, i_end), K: (0, k_end)})
