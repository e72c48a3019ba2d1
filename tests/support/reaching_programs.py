"""Small gt4py programs that reach the elements of their arguments in every way that gt4py has."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

import gt4py.next as gtx
from gt4py.next import broadcast, max_over, min_over, neighbor_sum, where
from gt4py.next.experimental import as_offset, concat_where

from tests.support.small_programs import (
    E2V,
    V2E,
    E2VDim,
    Edge,
    EdgeK,
    I,
    K,
    Line,
    Plane,
    V2EDim,
    Vertex,
    VertexK,
)

Column = gtx.Field[gtx.Dims[K], gtx.float64]
Mask = gtx.Field[gtx.Dims[I, K], bool]
Counts = gtx.Field[gtx.Dims[I, K], gtx.int32]
Koff = gtx.FieldOffset("Koff", source=K, target=(K,))


# --- Shifts -----------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _offsets(a: Plane, b: Plane) -> Plane:
    return a(K + 1) - a(K - 2) + b(I + 3)(K - 1)


@gtx.program
def offsets(a: Plane, b: Plane, out: Plane, i_start: gtx.int32, i_end: gtx.int32, k_start: gtx.int32, k_end: gtx.int32):
    _offsets(a, b, out=out, domain={I: (i_start, i_end), K: (k_start, k_end)})


@gtx.field_operator
def _staggered(a: Plane, levels: Column) -> Plane:
    return (a(K + 1) - a) / (levels(K + 1) - levels)


@gtx.program
def staggered(a: Plane, levels: Column, out: Plane):
    _staggered(a, levels, out=out)


@gtx.field_operator
def _broadcast_line(line: Line, column: Column) -> Plane:
    return broadcast(line, (I, K)) + column


@gtx.program
def broadcasts(line: Line, column: Column, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _broadcast_line(line, column, out=out, domain={I: (1, i_end), K: (2, k_end)})


@gtx.field_operator
def _smooth(a: Plane) -> Plane:
    return a(K + 1) + a(K - 1) - 2.0 * a


@gtx.field_operator
def _smooth_twice(a: Plane) -> Plane:
    return _smooth(_smooth(a))


@gtx.program
def smooth_twice(a: Plane, out: Plane, i_end: gtx.int32, k_start: gtx.int32, k_end: gtx.int32):
    _smooth_twice(a, out=out, domain={I: (0, i_end), K: (k_start, k_end)})


@gtx.field_operator
def _computed_offset(a: Plane, by: Counts) -> Plane:
    return a(as_offset(Koff, by))


@gtx.program
def computed_offset(a: Plane, by: Counts, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _computed_offset(a, by, out=out, domain={I: (0, i_end), K: (0, k_end)})


# --- Branches ---------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _masked(mask: Mask, a: Plane, b: Plane) -> Plane:
    return where(mask, a(K + 1), b(K - 1))


@gtx.program
def masked(mask: Mask, a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _masked(mask, a, b, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _where_no_branch(mask: Mask, a: Plane, b: Plane) -> Plane:
    return where(mask, a, b) + where(a > 1.0, b, 0.0)


@gtx.program
def masked_in_place(mask: Mask, a: Plane, b: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _where_no_branch(mask, a, b, out=a, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _by_flag(flag: bool, a: Plane, b: Plane) -> Plane:
    return a(K + 1) if flag else b(K - 1)


@gtx.program
def by_flag(flag: bool, a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _by_flag(flag, a, b, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _by_number(n: gtx.int32, m: gtx.int32, a: Plane, b: Plane) -> Plane:
    if n > m:
        result = a(K + 1)
    elif n == 3:
        result = b(K - 1)
    else:
        result = a + b
    return result


@gtx.program
def by_number(n: gtx.int32, m: gtx.int32, a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _by_number(n, m, a, b, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _by_two_flags(first: bool, second: bool, a: Plane, b: Plane) -> Plane:
    return a(K + 1) if first & (not second) else b(K - 1)


@gtx.program
def by_two_flags(first: bool, second: bool, a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _by_two_flags(first, second, a, b, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _by_place(a: Plane, b: Plane, middle: gtx.int32) -> Plane:
    return concat_where(middle > K, a(K + 1), b(K - 1))


@gtx.program
def by_place(a: Plane, b: Plane, out: Plane, middle: gtx.int32, i_end: gtx.int32, k_end: gtx.int32):
    _by_place(a, b, middle, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _boundaries(a: Plane, top: Column, bottom: Column, last: gtx.int32) -> Plane:
    inner = a(K + 1) - a(K - 1)
    inner = concat_where(K == 0, broadcast(top, (I, K)), inner)
    return concat_where(last == K, broadcast(bottom, (I, K)), inner)


@gtx.program
def boundaries(a: Plane, top: Column, bottom: Column, out: Plane, last: gtx.int32, i_end: gtx.int32):
    _boundaries(a, top, bottom, last, out=out, domain={I: (0, i_end), K: (0, last + 1)})


@gtx.field_operator
def _between(a: Plane, b: Plane, first: gtx.int32, last: gtx.int32) -> Plane:
    return concat_where((first <= K) & (last > K), a(K - 1), b(I + 1))


@gtx.program
def between(a: Plane, b: Plane, out: Plane, first: gtx.int32, last: gtx.int32, i_end: gtx.int32, k_end: gtx.int32):
    _between(a, b, first, last, out=out, domain={I: (0, i_end), K: (0, k_end)})


@gtx.field_operator
def _between_shifted(a: Plane, b: Plane, first: gtx.int32, last: gtx.int32) -> Plane:
    """gt4py's optimisation makes a choice in a tasklet of this."""
    chosen = concat_where((first <= K) & (last > K), a + 1.0, b)
    return chosen(K + 1) + chosen


@gtx.program
def between_shifted(
    a: Plane, b: Plane, out: Plane, first: gtx.int32, last: gtx.int32, i_end: gtx.int32, k_end: gtx.int32
):
    _between_shifted(a, b, first, last, out=out, domain={I: (0, i_end), K: (0, k_end)})


@gtx.field_operator
def _outside_shifted(a: Plane, b: Plane, c: Plane, first: gtx.int32, last: gtx.int32) -> Plane:
    chosen = concat_where((first > K) | (last < K), a, concat_where(first == K, c, b(K - 1)))
    return chosen(K + 1) - chosen(K - 1)


@gtx.program
def outside_shifted(
    a: Plane, b: Plane, c: Plane, out: Plane, first: gtx.int32, last: gtx.int32, i_end: gtx.int32, k_end: gtx.int32
):
    _outside_shifted(a, b, c, first, last, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _corner_shifted(a: Plane, b: Plane, c: Plane, i_first: gtx.int32, k_first: gtx.int32) -> Plane:
    chosen = concat_where(i_first <= I, concat_where(k_first <= K, a, b), c)
    return chosen(I + 1) + chosen(K + 1)


@gtx.program
def corner_shifted(
    a: Plane, b: Plane, c: Plane, out: Plane, i_first: gtx.int32, k_first: gtx.int32, i_end: gtx.int32, k_end: gtx.int32
):
    _corner_shifted(a, b, c, i_first, k_first, out=out, domain={I: (0, i_end), K: (0, k_end)})


@gtx.field_operator
def _framed(inner: Plane, edge: Line, i_last: gtx.int32, k_last: gtx.int32) -> Plane:
    """`inner` has only the elements inside the frame."""
    sides = concat_where(k_last == K, 2.0, concat_where(K == 0, broadcast(edge, (I, K)), inner))
    return concat_where(I == 0, 1.0, concat_where(i_last == I, 1.0, sides))


@gtx.program
def framed(inner: Plane, edge: Line, out: Plane, i_last: gtx.int32, k_last: gtx.int32):
    _framed(inner, edge, i_last, k_last, out=out, domain={I: (0, i_last + 1), K: (0, k_last + 1)})


@gtx.field_operator
def _chosen(u: Plane, q: Plane) -> Plane:
    return where(u > 0.0, q(I + 1), q)


@gtx.program
def chosen(u: Plane, q: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _chosen(u, q, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _by_fraction(x: gtx.float64, a: Plane, b: Plane) -> Plane:
    return a(K + 1) + b if x > 0.5 else b + 1.0


@gtx.program
def by_fraction(x: gtx.float64, a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _by_fraction(x, a, b, out=out, domain={I: (0, i_end), K: (1, k_end)})


@gtx.field_operator
def _shifted_by_fraction(x: gtx.float64, a: Plane, b: Plane) -> Plane:
    product = a * b
    return product(I + 1) if x > 0.5 else product + a


@gtx.program
def shifted_by_fraction(x: gtx.float64, a: Plane, b: Plane, out: Plane, i_end: gtx.int32):
    _shifted_by_fraction(x, a, b, out=out, domain={I: (0, i_end), K: (0, 2)})


@gtx.field_operator
def _laplacian(a: Plane) -> Plane:
    return a(I + 1) + a(I - 1) + a(K + 1) + a(K - 1) - 4.0 * a


@gtx.field_operator
def _bordered(a: Plane, i_last: gtx.int32, k_last: gtx.int32) -> Plane:
    sides = concat_where(K == 0, a, concat_where(k_last == K, a, _laplacian(_laplacian(a))))
    return concat_where(I == 0, a, concat_where(i_last == I, a, sides))


@gtx.program
def bordered(a: Plane, out: Plane, i_last: gtx.int32, k_last: gtx.int32):
    """Reads many boxes of temporaries."""
    _bordered(a, i_last, k_last, out=out, domain={I: (0, i_last + 1), K: (0, k_last + 1)})


# --- Scans ------------------------------------------------------------------------------------------------------------


@gtx.scan_operator(axis=K, forward=True, init=(0.0, 0.0))
def _down(state: tuple[float, float], a: float, b: float) -> tuple[float, float]:
    return state[0] + a, state[1] * b


@gtx.scan_operator(axis=K, forward=False, init=0.0)
def _up(state: float, a: float, b: float) -> float:
    return state * a + b


@gtx.field_operator
def _both_ways(a: Plane, b: Plane) -> Plane:
    total, product = _down(a, b)
    return _up(total, product)


@gtx.program
def both_ways(a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_start: gtx.int32, k_end: gtx.int32):
    _both_ways(a, b, out=out, domain={I: (0, i_end), K: (k_start, k_end)})


@gtx.program
def backward(a: Plane, b: Plane, out: Plane, i_end: gtx.int32, k_start: gtx.int32, k_end: gtx.int32):
    _up(a, b, out=out, domain={I: (0, i_end), K: (k_start, k_end)})


@gtx.program
def forward_pair(a: Plane, b: Plane, out: tuple[Plane, Plane], k_end: gtx.int32):
    _down(a, b, out=out, domain={I: (-2, 4), K: (1, k_end)})


# --- Outputs ----------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _two(a: Plane, b: Plane) -> tuple[Plane, Plane]:
    return a(K + 1), a + b


@gtx.program
def two_domains(a: Plane, b: Plane, first: Plane, second: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _two(
        a,
        b,
        out=(first, second),
        domain=({I: (0, i_end), K: (0, k_end)}, {I: (1, i_end - 1), K: (2, k_end + 1)}),
    )


@gtx.field_operator
def _product(a: Plane, b: Plane) -> Plane:
    return a * b


@gtx.program
def slices(a: Plane, b: Plane, out: Plane):
    _smooth(a, out=out[1:-1, 1:-1])
    _product(a, b, out=out[:2, :])


@gtx.field_operator
def _up_and_down(a: Plane, b: Plane) -> Plane:
    return a(K + 1) + b(K - 1)


@gtx.program
def two_steps(a: Plane, b: Plane, middle: Plane, out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _smooth(a, out=middle, domain={I: (0, i_end), K: (1, k_end)})
    _up_and_down(middle, b, out=out, domain={I: (0, i_end), K: (1, k_end - 1)})


@gtx.field_operator
def _identity(a: Plane) -> Plane:
    return a


@gtx.program
def copies(a: Plane, out: Plane, i_start: gtx.int32, i_end: gtx.int32, k_end: gtx.int32):
    _identity(a, out=out, domain={I: (i_start, i_end), K: (0, k_end)})


@gtx.field_operator
def _constant() -> Plane:
    return broadcast(1.0, (I, K))


@gtx.program
def fills(out: Plane, i_end: gtx.int32, k_end: gtx.int32):
    _constant(out=out, domain={I: (0, i_end), K: (1, k_end)})


# --- Neighbors --------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _extremes(a: EdgeK, b: VertexK) -> EdgeK:
    return max_over(b(E2V), axis=E2VDim) - min_over(b(E2V), axis=E2VDim) + a


@gtx.program
def extremes(a: EdgeK, b: VertexK, out: EdgeK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _extremes(a, b, out=out, domain={Edge: (start, end), K: (1, k_end)})


@gtx.field_operator
def _neighbor_levels(b: VertexK) -> EdgeK:
    return b(E2V[0])(K + 1) - b(E2V[1])(K - 1)


@gtx.program
def neighbor_levels(b: VertexK, out: EdgeK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _neighbor_levels(b, out=out, domain={Edge: (start, end), K: (1, k_end)})


@gtx.field_operator
def _second_only(a: EdgeK, b: VertexK) -> EdgeK:
    return b(E2V[1]) - a


@gtx.program
def second_only(a: EdgeK, b: VertexK, out: EdgeK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _second_only(a, b, out=out, domain={Edge: (start, end), K: (1, k_end)})


@gtx.field_operator
def _chain(a: EdgeK) -> EdgeK:
    at_vertices = neighbor_sum(a(V2E), axis=V2EDim)
    return neighbor_sum(at_vertices(E2V), axis=E2VDim)


@gtx.program
def chain(a: EdgeK, out: EdgeK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _chain(a, out=out, domain={Edge: (start, end), K: (1, k_end)})


@gtx.field_operator
def _direct_chain(a: EdgeK) -> EdgeK:
    return a(V2E[0])(E2V[1])


@gtx.program
def direct_chain(a: EdgeK, out: EdgeK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _direct_chain(a, out=out, domain={Edge: (start, end), K: (1, k_end)})


@gtx.field_operator
def _first_neighbor(a: EdgeK) -> VertexK:
    return a(V2E[1]) + 1.0


@gtx.program
def first_neighbor(a: EdgeK, out: VertexK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _first_neighbor(a, out=out, domain={Vertex: (start, end), K: (1, k_end)})


@gtx.field_operator
def _masked_neighbors(mask: gtx.Field[gtx.Dims[Vertex], bool], a: EdgeK, b: VertexK) -> VertexK:
    return where(mask, neighbor_sum(a(V2E), axis=V2EDim), b)


@gtx.program
def masked_neighbors(
    mask: gtx.Field[gtx.Dims[Vertex], bool], a: EdgeK, b: VertexK, out: VertexK, end: gtx.int32, k_end: gtx.int32
):
    _masked_neighbors(mask, a, b, out=out, domain={Vertex: (2, end), K: (1, k_end)})


@gtx.field_operator
def _regions(a: EdgeK, b: EdgeK, first: gtx.int32) -> VertexK:
    return concat_where(Vertex < first, neighbor_sum(a(V2E), axis=V2EDim), neighbor_sum(b(V2E), axis=V2EDim))


@gtx.program
def regions(a: EdgeK, b: EdgeK, out: VertexK, first: gtx.int32, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _regions(a, b, first, out=out, domain={Vertex: (start, end), K: (1, k_end)})


@gtx.field_operator
def _weighted(a: EdgeK, weights: gtx.Field[gtx.Dims[Vertex, V2EDim], gtx.float64]) -> VertexK:
    return neighbor_sum(a(V2E) * weights, axis=V2EDim) + neighbor_sum(weights, axis=V2EDim)


@gtx.program
def weighted(
    a: EdgeK,
    weights: gtx.Field[gtx.Dims[Vertex, V2EDim], gtx.float64],
    out: VertexK,
    start: gtx.int32,
    end: gtx.int32,
    k_end: gtx.int32,
):
    _weighted(a, weights, out=out, domain={Vertex: (start, end), K: (1, k_end)})


@gtx.scan_operator(axis=K, forward=False, init=0.0)
def _up_on_vertices(state: float, a: float, b: float) -> float:
    return state * a + b


@gtx.field_operator
def _scan_of_neighbors(a: EdgeK, b: VertexK) -> VertexK:
    return _up_on_vertices(neighbor_sum(a(V2E), axis=V2EDim), b)


@gtx.program
def scan_of_neighbors(a: EdgeK, b: VertexK, out: VertexK, start: gtx.int32, end: gtx.int32, k_end: gtx.int32):
    _scan_of_neighbors(a, b, out=out, domain={Vertex: (start, end), K: (1, k_end)})
