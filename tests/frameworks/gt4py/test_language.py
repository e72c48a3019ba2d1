"""What gt4py's language has, built and called through stubs: every builtin, reductions, scans, tuples, slices."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

import math
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import (
    abs,  # noqa: A004
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    astype,
    broadcast,
    cbrt,
    ceil,
    cos,
    cosh,
    exp,
    floor,
    fmod,
    gamma,
    isfinite,
    isinf,
    isnan,
    log,
    max_over,
    maximum,
    min_over,
    minimum,
    neighbor_sum,
    power,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
)
from gt4py.next.iterator.builtins import (
    as_fieldop,
    cartesian_domain,
    deref,
    named_range,
    plus,
    scan,
)
from gt4py.next.iterator.runtime import fendef, fundef, set_at

from gtstub.frameworks.gt4py.backend import StubBackend
from tests.support.small_programs import E2V, V2E, E2VDim, Edge, I, K, V2EDim, Vertex

Line = gtx.Field[[I], gtx.float64]
Integers = gtx.Field[[I], gtx.int32]
Flags = gtx.Field[[I], bool]
Plane = gtx.Field[[I, K], gtx.float64]
OnVertices = gtx.Field[[Vertex], gtx.float64]
OnEdges = gtx.Field[[Edge], gtx.float64]


def line(values: Any) -> Any:
    return gtx.as_field([I], np.asarray(values))


@gtx.field_operator
def trigonometric(a: Line) -> tuple[Line, Line, Line, Line, Line, Line]:
    return sin(a), cos(a), tan(a), arcsin(a), arccos(a), arctan(a)


@gtx.field_operator
def hyperbolic(a: Line) -> tuple[Line, Line, Line, Line, Line, Line]:
    return sinh(a), cosh(a), tanh(a), arcsinh(a), arccosh(a + 1.0), arctanh(a)


@gtx.field_operator
def exponential(a: Line) -> tuple[Line, Line, Line, Line, Line, Line]:
    return sqrt(a), exp(a), log(a), gamma(a), cbrt(a), power(a, 1.5)


@gtx.field_operator
def rounding(a: Line, b: Line) -> tuple[Line, Line, Line, Line, Line, Line, Line]:
    return abs(-a), floor(b), ceil(b), trunc(-b), minimum(a, b), maximum(a, b), fmod(b, a)


@gtx.field_operator
def conditions(a: Line, b: Line, n: gtx.int32) -> tuple[Line, Flags, Flags, Flags, Integers]:
    either = where((a < b) & ~isnan(b), a, 0.0)
    return either, isfinite(b), isinf(b), isnan(b) | (a == b), astype(4.0 * a, gtx.int32) // n


@gtx.program
def builtins(
    a: Line,
    b: Line,
    n: gtx.int32,
    one: tuple[Line, Line, Line, Line, Line, Line],
    two: tuple[Line, Line, Line, Line, Line, Line],
    three: tuple[Line, Line, Line, Line, Line, Line],
    four: tuple[Line, Line, Line, Line, Line, Line, Line],
    five: tuple[Line, Flags, Flags, Flags, Integers],
):
    trigonometric(a, out=one)
    hyperbolic(a, out=two)
    exponential(a, out=three)
    rounding(a, b, out=four)
    conditions(a, b, n, out=five)


def test_builtins_and_several_operators_in_a_program(backend: StubBackend) -> None:
    a, b = np.array([0.1, 0.25, 0.5, 0.75, 0.9]), np.array([1.5, np.inf, np.nan, 0.75, 0.3])
    types = [(np.float64,) * 6] * 3 + [(np.float64,) * 7, (np.float64, np.bool_, np.bool_, np.bool_, np.int32)]
    outs = [tuple(line(np.zeros(5, dtype)) for dtype in dtypes) for dtypes in types]
    builtins.with_backend(backend)(line(a), line(b), np.int32(2), *outs, offset_provider={})
    with np.errstate(invalid="ignore"):
        expected = [
            (np.sin(a), np.cos(a), np.tan(a), np.arcsin(a), np.arccos(a), np.arctan(a)),
            (np.sinh(a), np.cosh(a), np.tanh(a), np.arcsinh(a), np.arccosh(a + 1.0), np.arctanh(a)),
            (np.sqrt(a), np.exp(a), np.log(a), np.vectorize(math.gamma)(a), np.cbrt(a), a**1.5),
            (a, np.floor(b), np.ceil(b), np.trunc(-b), np.minimum(a, b), np.maximum(a, b), np.fmod(b, a)),
            (
                np.where(a < b, a, 0.0),
                np.isfinite(b),
                np.isinf(b),
                np.isnan(b) | (a == b),
                (4.0 * a).astype(np.int32) // 2,
            ),
        ]
    finite = np.isfinite(b)  # DaCe rounds to integers
    for number, (out, wanted) in enumerate(zip(outs, expected, strict=True)):
        compared = finite if number == 3 else slice(None)
        for found, values in zip(out, wanted, strict=True):
            np.testing.assert_allclose(found.asnumpy()[compared], values[compared], rtol=1e-14)


@gtx.field_operator
def reductions(x: OnEdges, y: OnVertices) -> tuple[OnVertices, OnVertices, OnVertices]:
    sums = neighbor_sum(neighbor_sum(y(E2V), axis=E2VDim)(V2E), axis=V2EDim)
    return sums, max_over(x(V2E), axis=V2EDim), min_over(x(V2E), axis=V2EDim)


@pytest.mark.parametrize("skips", [False, True])
def test_reductions_over_connectivities(backend: StubBackend, skips: bool) -> None:
    v2e = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    if skips:
        v2e[2, 1] = -1
    e2v = np.array([[0, 2], [0, 1], [1, 2]], np.int32)
    provider = {
        "V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=v2e, skip_value=-1 if skips else None),
        "E2V": gtx.as_connectivity([Edge, E2VDim], codomain=Vertex, data=e2v),
    }
    x, y = np.array([3.0, -1.0, 2.0]), np.array([1.0, 10.0, 100.0])
    out = tuple(gtx.as_field([Vertex], np.zeros(3)) for _ in range(3))
    reductions.with_backend(backend)(
        gtx.as_field([Edge], x), gtx.as_field([Vertex], y), out=out, offset_provider=provider
    )
    edges = [[edge for edge in row if edge >= 0] for row in v2e]
    sums, greatest, least = (field.asnumpy() for field in out)
    np.testing.assert_array_equal(sums, [sum(y[e2v[edge]].sum() for edge in row) for row in edges])
    np.testing.assert_array_equal(greatest, [max(x[row]) for row in edges])
    np.testing.assert_array_equal(least, [min(x[row]) for row in edges])


@gtx.scan_operator(axis=K, forward=True, init=(0.0, 1.0))
def running(state: tuple[float, float], a: float) -> tuple[float, float]:
    return state[0] + a, state[1] * 2.0


@gtx.scan_operator(axis=K, forward=False, init=0.0)
def from_below(state: float, a: float, factor: float) -> float:
    return state * factor + a


@gtx.field_operator
def columns(a: Plane, profile: gtx.Field[[K], gtx.float64], factor: gtx.float64) -> tuple[Plane, tuple[Plane, Plane]]:
    return from_below(a + broadcast(profile, (I, K)), factor), running(a)


@gtx.program
def scans(
    a: Plane,
    profile: gtx.Field[[K], gtx.float64],
    factor: gtx.float64,
    out: tuple[Plane, tuple[Plane, Plane]],
    inner: Plane,
):
    columns(a, profile, factor, out=out)
    from_below(a, factor, out=inner[1:-1, 1:])


def test_scans_nested_tuples_and_slices(backend: StubBackend) -> None:
    a, profile = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0])
    planes = [gtx.as_field([I, K], np.zeros((4, 3))) for _ in range(4)]
    scans.with_backend(backend)(
        gtx.as_field([I, K], a),
        gtx.as_field([K], profile),
        0.5,
        (planes[0], (planes[1], planes[2])),
        planes[3],
        offset_provider={},
    )

    def below(values: np.ndarray) -> np.ndarray:
        found, state = np.zeros_like(values), np.zeros(len(values))
        for k in reversed(range(values.shape[1])):
            state = state * 0.5 + values[:, k]
            found[:, k] = state
        return found

    inner = np.zeros((4, 3))
    inner[1:-1, 1:] = below(a[:, 1:])[1:-1]
    expected = (below(a + profile), np.cumsum(a, axis=1), np.broadcast_to([2.0, 4.0, 8.0], (4, 3)), inner)
    for plane, wanted in zip(planes, expected, strict=True):
        np.testing.assert_array_equal(plane.asnumpy(), wanted)


@fundef
def add_to(state: Any, a: Any) -> Any:
    return plus(state, deref(a))


@fendef
def column_sums(a: Any, out: Any, i_size: Any, k_size: Any) -> None:
    domain = cartesian_domain(named_range(I, 0, i_size), named_range(K, 0, k_size))
    set_at(as_fieldop(scan(add_to, True, 0.0), domain)(a), domain, out)


def test_column_axis_of_the_iterator_level(backend: StubBackend) -> None:
    a, out = np.arange(12.0).reshape(4, 3), gtx.as_field([I, K], np.zeros((4, 3)))
    sizes = (np.int32(4), np.int32(3))
    column_sums(gtx.as_field([I, K], a), out, *sizes, offset_provider={}, column_axis=K, backend=backend)
    np.testing.assert_array_equal(out.asnumpy(), np.cumsum(a, axis=1))
