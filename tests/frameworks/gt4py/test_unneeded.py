"""
Fields on exactly the domain that embedded execution needs, where gt4py's SDFG reads more: elements on which no result
depends are not claimed, so that the call runs as with gt4py.
"""

from __future__ import annotations

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import broadcast, common, neighbor_sum, where
from gt4py.next.experimental import concat_where

from gtstub import _host
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.reaching_programs import I, K, Plane, bordered, framed, shifted_by_fraction
from tests.support.small_programs import V2E, Edge, V2EDim, Vertex

pytestmark = pytest.mark.xdist_group("unneeded elements of gt4py programs")

I_LAST, K_LAST = 4, 6
ENDS = {"i_last": np.int32(I_LAST), "k_last": np.int32(K_LAST)}


@gtx.field_operator
def _inside(inner: Plane, i_last: gtx.int32) -> Plane:
    return concat_where(I == 0, broadcast(1.0, (I, K)), concat_where(i_last == I, 1.0, inner + 1.0))


@gtx.program
def inside(inner: Plane, i_last: gtx.int32, k_last: gtx.int32):
    """Writes all elements of `inner`, which has only those inside the frame."""
    _inside(inner, i_last, out=inner, domain={I: (1, i_last), K: (1, k_last)})


def built(program: gtx.program, **arguments: object) -> _host.Program:
    made = program.with_backend(make_backend(gpu=False, auto_optimize=False))
    made(**arguments, offset_provider={})
    (executable,) = made._compiled_programs.compiled_programs.values()
    assert isinstance(executable, _host.Program)
    return executable


def plane(values: np.ndarray, *starts: int) -> gtx.Field:
    """A field with this memory; gtx.as_field() would copy it."""
    ranges = {dim: (first, first + size) for dim, first, size in zip((I, K), starts, values.shape, strict=True)}
    return common._field(values, domain=common.domain(ranges))


def arguments(inner: np.ndarray) -> dict[str, gtx.Field]:
    return {
        "inner": plane(inner, 1, 1),
        "edge": gtx.as_field({I: (0, I_LAST + 1)}, np.arange(I_LAST + 1.0)),
        "out": plane(np.full((I_LAST + 1, K_LAST + 1), np.nan), 0, 0),
    }


def expected(inner: np.ndarray) -> np.ndarray:
    values = np.full((I_LAST + 1, K_LAST + 1), 1.0)
    values[1:-1, 1:-1] = inner
    values[1:-1, 0] = np.arange(1.0, I_LAST)
    values[1:-1, -1] = 2.0
    return values


INNER = np.random.default_rng(0).random((I_LAST - 1, K_LAST - 1))


@pytest.fixture(scope="module")
def program() -> _host.Program:
    return built(framed, **arguments(INNER), **ENDS)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_are_those_of_embedded_execution(program: _host.Program, order: str) -> None:
    inner = np.require(INNER, requirements=order)
    every_second = np.repeat(np.repeat(inner, 2, 0), 2, 1)[::2, ::2]
    for values in (inner, every_second):
        fields, others = arguments(values), arguments(values)
        framed(**others, **ENDS, offset_provider={})
        program(**fields, **ENDS)
        np.testing.assert_array_equal(fields["out"].ndarray, others["out"].ndarray)
        np.testing.assert_array_equal(fields["out"].ndarray, expected(values))


def test_what_a_program_writes_may_lack_elements_too() -> None:
    field = plane(INNER.copy(), 1, 1)
    program = built(inside, inner=field, **ENDS)
    np.testing.assert_array_equal(field.ndarray, INNER + 1.0)
    program(field, *ENDS.values())
    np.testing.assert_array_equal(field.ndarray, INNER + 2.0)


def test_what_is_needed_is_refused(program: _host.Program) -> None:
    fields = arguments(INNER)
    fields["inner"] = plane(INNER[1:], 2, 1)
    with pytest.raises(ValueError, match=r"'inner' .* must have the indices 1 to 3 on axis 0 \('I'\)"):
        program(**fields, **ENDS)
    assert np.isnan(fields["out"].ndarray).all()


def test_a_branch_on_a_fraction_needs_what_is_in_the_branch() -> None:
    ranges = {"a": plane(np.random.default_rng(0).random((4, 2)), 1, 0)}
    ranges["b"] = plane(np.random.default_rng(1).random((4, 2)), 1, 0)
    found, expected = plane(np.zeros((4, 2)), 0, 0), plane(np.zeros((4, 2)), 0, 0)
    program = built(shifted_by_fraction, x=1.0, **ranges, out=found, i_end=np.int32(4))
    shifted_by_fraction(1.0, *ranges.values(), expected, np.int32(4), offset_provider={})
    np.testing.assert_array_equal(found.ndarray, expected.ndarray)
    with pytest.raises(ValueError, match=r"'a' .* must have the indices 0 to 3 on axis 0 \('I'\)"):
        program(x=0.0, **ranges, out=found, i_end=np.int32(4))


def test_what_is_too_much_to_tell_counts_as_not_needed() -> None:
    a = plane(np.random.default_rng(0).random((7, 7)), -1, -1)
    found, expected = plane(np.zeros((5, 5)), 0, 0), plane(np.zeros((5, 5)), 0, 0)
    ends = {"i_last": np.int32(4), "k_last": np.int32(4)}
    built(bordered, a=a, out=found, **ends)
    bordered(a, expected, *ends.values(), offset_provider={})
    np.testing.assert_allclose(found.ndarray, expected.ndarray, rtol=1e-14)


@gtx.field_operator
def _chosen_in_corner(u: Plane, q: Plane, i_first: gtx.int32, k_first: gtx.int32) -> Plane:
    chosen = where(u > 0.0, q(I - 2), q)
    return concat_where((i_first - 1 >= I) | (k_first <= K), chosen(I - 1), q)


@gtx.program
def chosen_in_corner(
    u: Plane, q: Plane, out: Plane, i_first: gtx.int32, k_first: gtx.int32, i_start: gtx.int32, k_start: gtx.int32
):
    """Optimised, the SDFG has a branch on data in a map, which writes a temporary that only the map uses."""
    _chosen_in_corner(u, q, i_first, k_first, out=out, domain={I: (i_start, 4), K: (k_start, 5)})


def test_what_a_branch_on_data_chooses_is_needed_where_a_result_uses_it() -> None:
    program = chosen_in_corner.with_backend(make_backend(gpu=False))
    values = np.random.default_rng(0).random((8, 5))
    signs = np.random.default_rng(1).random((8, 5)) - 0.5

    def called(first: int, i_first: int, k_first: int) -> np.ndarray:
        """The result with the values from index `first` on."""
        out = plane(np.zeros((4, 5)), 0, 0)
        fields = plane(signs, -3, 0), plane(values[3 + first :], first, 0), out
        program(*fields, *map(np.int32, (i_first, k_first, 0, 0)), offset_provider={})
        return out.ndarray

    chosen = np.where(signs[2:6] > 0.0, values[0:4], values[2:6])
    i, k = np.arange(4)[:, np.newaxis], np.arange(5)
    for first, i_first, k_first in ((0, 0, 5), (-3, 0, 3), (-3, 2, 5)):
        expected = np.where((i < i_first) | (k >= k_first), chosen, values[3:7])
        np.testing.assert_array_equal(called(first, i_first, k_first), expected)
        with pytest.raises(ValueError, match=rf"'q' .* must have the indices {first} to "):
            called(first + 1, i_first, k_first)


# --- Behind a table ---------------------------------------------------------------------------------------------------


@gtx.field_operator
def _sum_of_squares(a: gtx.Field[gtx.Dims[Edge], gtx.float64]) -> gtx.Field[gtx.Dims[Vertex], gtx.float64]:
    squares = a * a + 1.0
    return neighbor_sum(squares(V2E), axis=V2EDim)


@gtx.program
def sum_of_squares(a: gtx.Field[gtx.Dims[Edge], gtx.float64], out: gtx.Field[gtx.Dims[Vertex], gtx.float64]):
    _sum_of_squares(a, out=out)


def edges(first: int, *values: float) -> gtx.Field:
    return common._field(np.array(values), domain=common.domain({Edge: (first, first + len(values))}))


def test_a_temporary_behind_a_table_needs_the_elements_that_the_table_names() -> None:
    def tables(*rows: tuple[int, int]) -> dict[str, common.Connectivity]:
        domain = common.domain({Vertex: (0, len(rows)), V2EDim: (0, 2)})
        return {"V2E": common._connectivity(np.array(rows, np.int32), codomain=Edge, domain=domain)}

    out = gtx.as_field([Vertex], np.zeros(3))
    made = sum_of_squares.with_backend(make_backend(gpu=False))
    named = tables((3, 4), (4, 5), (5, 3))
    made(edges(3, 1.0, 2.0, 3.0), out, offset_provider=named)
    np.testing.assert_array_equal(out.ndarray, [7.0, 15.0, 12.0])
    with pytest.raises(
        ValueError, match=r"'V2E' .* has index 3 in row 0, column 0, but argument 'a' has the indices 4 to 5"
    ):
        made(edges(4, 2.0, 3.0), out, offset_provider=named)
    with pytest.raises(
        ValueError, match=r"'V2E' .* has index 5 in row 1, column 1, but argument 'a' has the indices 3 to 4"
    ):
        made(edges(3, 1.0, 2.0), out, offset_provider=named)
    made(edges(4, 2.0, 3.0), out, offset_provider=tables((5, 4), (4, 5), (5, 5)))
    np.testing.assert_array_equal(out.ndarray, [15.0, 15.0, 20.0])
