"""0.0 and -0.0 as values of gt4py's own static parameters, for which gt4py keeps one callable."""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import astype

import gtstub
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.settings import cache_dir
from tests.support.small_programs import I

Line = gtx.Field[[I], gtx.float64]


@gtx.field_operator
def _divide(
    a: Line, s: gtx.float64, pair: tuple[gtx.int32, tuple[gtx.float32, gtx.float64]]
) -> tuple[Line, Line, Line]:
    return a / s, a / astype(pair[1][0], gtx.float64), a / pair[1][1]


@gtx.program
def divide(
    a: Line,
    s: gtx.float64,
    pair: tuple[gtx.int32, tuple[gtx.float32, gtx.float64]],
    out: tuple[Line, Line, Line],
):
    _divide(a, s, pair, out=out)


ONES = (1, (np.float32(1), 1.0))


def is_right(program: Any, s: Any, pair: Any = ONES) -> bool:
    out = tuple(gtx.as_field([I], np.full(2, 9.0)) for _ in range(3))
    program(gtx.as_field([I], np.array([1.0, -2.0])), s, pair, out, offset_provider={})
    divisors = (s, *pair[1])
    with np.errstate(divide="ignore"):
        return all(
            np.array_equal(each.asnumpy(), np.array([1.0, -2.0]) / np.float64(divisor), equal_nan=True)
            for each, divisor in zip(out, divisors, strict=True)
        )


def number_of_entries() -> int:
    return len(list(cache_dir()[0].glob("divide-*")))


def test_calls(backend: StubBackend) -> None:
    program = divide.with_backend(backend).with_compilation_options(static_params=["s"])
    for value in (0.0, -0.0, np.float64(0.0), np.float64(-0.0), -0.0, 2.0, float("nan"), np.nan):
        assert is_right(program, value), value
    assert number_of_entries() == 4  # one for each zero, 2 and NaN


def test_tuples(backend: StubBackend) -> None:
    program = divide.with_backend(backend).with_compilation_options(static_params=["pair", "s"])
    for signs in ((1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1), (1, -1, 1)):
        s, narrow, wide = (0.0 * sign for sign in signs)
        assert is_right(program, s, (0, (np.float32(narrow), wide))), signs
    assert number_of_entries() == 4


def test_ahead_of_calls(backend: StubBackend) -> None:
    program = divide.with_backend(backend).compile(s=[-0.0, 1.0], offset_provider={})
    assert is_right(program, 0.0)
    assert is_right(program, -0.0)
    assert number_of_entries() == 3


def test_zeros_of_both_kinds_of_programs(backend: StubBackend) -> None:
    """`gtstub.compile()` with the entries of gt4py's program calls the programs themselves."""
    program = divide.with_backend(backend).with_compilation_options(static_params=["s"])
    assert is_right(program, 0.0)
    assert is_right(program, -0.0)
    compiled = gtstub.compile(divide, backend=backend, static_args={"s": [-0.0, 0.0]}, offset_provider={})
    outs = [tuple(gtx.as_field([I], np.zeros(1)) for _ in range(3)) for _ in range(2)]
    for value, out in zip((-0.0, 0.0), outs, strict=True):
        compiled(a=gtx.as_field([I], np.ones(1)), s=value, pair=(0, (1.0, 1.0)), out=out)
    assert [out[0].asnumpy()[0] for out in outs] == [-np.inf, np.inf]
    assert number_of_entries() == len(compiled._programs) == 2
