"""Domains that end where they begin, or before: nothing is computed, or the call is refused."""

from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next.experimental import concat_where

from gtstub.frameworks.gt4py.backend import make_backend

I = gtx.Dimension("I")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Field = gtx.Field[[I, K], gtx.float64]

FIRST, SIZES = (-5, -10), (45, 30)
"""Of the arrays on I and K."""


@gtx.field_operator
def _above(a: Field, b: Field, border: gtx.int32) -> Field:
    inner = concat_where(border >= I, b(K + 1), b) + a(K - 2)
    return inner(K + 1) * inner(I - 2)


@gtx.program
def above(
    a: Field, b: Field, out: Field, border: gtx.int32, i0: gtx.int32, i1: gtx.int32, k0: gtx.int32, k1: gtx.int32
):
    _above(a, b, border, out=out, domain={I: (i0, i1), K: (k0, k1)})


@gtx.field_operator
def _below(a: Field, b: Field, border: gtx.int32) -> Field:
    inner = concat_where(border >= I, b(K + 1), b) + a(K - 2)
    return inner(K - 1) * inner


@gtx.program
def below(
    a: Field, b: Field, out: Field, border: gtx.int32, i0: gtx.int32, i1: gtx.int32, k0: gtx.int32, k1: gtx.int32
):
    _below(a, b, border, out=out, domain={I: (i0, i1), K: (k0, k1)})


@gtx.field_operator
def _plain(a: Field, b: Field, border: gtx.int32) -> Field:
    return concat_where(border >= I, b(K + 1), b) + a(K - 2)


@gtx.program
def plain(
    a: Field, b: Field, out: Field, border: gtx.int32, i0: gtx.int32, i1: gtx.int32, k0: gtx.int32, k1: gtx.int32
):
    _plain(a, b, border, out=out, domain={I: (i0, i1), K: (k0, k1)})


def expected(program: str, a: np.ndarray, b: np.ndarray, domain: tuple[int, int, int, int]) -> np.ndarray:
    """The elements of the domain; the border is 3."""
    i0, i1, k0, k1 = domain

    def inner(i: int, k: int) -> float:
        row, level = i - FIRST[0], k - FIRST[1]
        return b[row, level + (i <= 3)] + a[row, level - 2]

    formulas = {
        "above": lambda i, k: inner(i, k + 1) * inner(i - 2, k),
        "below": lambda i, k: inner(i, k - 1) * inner(i, k),
        "plain": inner,
    }
    made = [[formulas[program](i, k) for k in range(k0, k1)] for i in range(i0, i1)]
    return np.array(made).reshape(max(i1 - i0, 0), max(k1 - k0, 0))


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("program", [above, below, plain], ids=lambda each: each.__name__)
def test_reversed_domains(program: Any, optimized: bool) -> None:
    called = program.with_backend(make_backend(gpu=False, auto_optimize=optimized))
    a, b = np.random.default_rng(1).uniform(0.5, 1.5, (2, *SIZES))
    refused: list[tuple[int, int, int, int]] = []
    messages: list[str] = []
    for domain in [
        (0, 38, 2, 5),
        (0, 38, 2, 3),
        *((0, 38, 3, last) for last in (3, 2, 1, -2)),
        *((4, last, 3, 5) for last in (5, 4, 3, 2, -1)),
        (4, 2, 3, 1),
    ]:
        out = np.zeros(SIZES)
        fields = [gtx.as_field({I: (-5, 40), K: (-10, 20)}, each) for each in (a, b, out)]
        try:
            called(*fields, gtx.int32(3), *map(gtx.int32, domain), offset_provider={})
        except ValueError as error:
            messages.append(str(error))
            refused.append(domain)
        else:
            i0, i1, k0, k1 = (each - FIRST[number // 2] for number, each in enumerate(domain))
            out[i0:i1, k0:k1] = expected(program.__name__, a, b, domain)
        result = fields[2].asnumpy()
        np.testing.assert_allclose(result, out, rtol=1e-14)
    assert all("must not have a negative size on axis" in each for each in messages)
    assert all(i1 < i0 or k1 < k0 for i0, i1, k0, k1 in refused)
    if program is plain or not optimized:
        assert refused == []
    else:
        assert (0, 38, 3, 2) in refused
