"""Conditions of `concat_where` that gt4py compiles wrongly, and what to write in their place."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import errors
from gt4py.next.experimental import concat_where

import gtstub
from gtstub.errors import GtstubError
from gtstub.frameworks.gt4py.backend import StubBackend
from tests.support.small_programs import I, K

Plane = gtx.Field[[I, K], gtx.float64]


@gtx.field_operator
def _unequal(a: Plane, b: Plane, m: gtx.int32) -> Plane:
    return concat_where((m + 1 != K) & (I < 3), a, b)


@gtx.program
def unequal(a: Plane, b: Plane, out: Plane, m: gtx.int32):
    _unequal(a, b, m, out=out)


@gtx.field_operator
def _outer(a: Plane, b: Plane) -> Plane:
    is_other = I != 3
    return concat_where(is_other, a, b)


@gtx.program
def outer(a: Plane, b: Plane, out: Plane):
    _outer(a, b, out=out)


@gtx.field_operator
def _right(a: Plane, b: Plane, m: gtx.int32) -> tuple[Plane, Plane, Plane]:
    by_scalar = a if m != 0 else b
    return concat_where((m < K) | (m > K), a, b), concat_where(m == K, b, a), by_scalar


@gtx.program
def right(a: Plane, b: Plane, out: tuple[Plane, Plane, Plane], m: gtx.int32):
    _right(a, b, m, out=out)


def field(value: int) -> gtx.Field:
    return gtx.as_field([I, K], np.full((2, 5), value, np.float64))


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(GtstubError) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, errors.DSLError)  # as gt4py's own
    assert caught.value.location is not None
    assert caught.value.location.filename == str(Path(__file__))
    return str(caught.value.message)


MESSAGE = (
    "Program '{}' has the condition '{}' of a 'concat_where', which gt4py takes for one that holds nowhere."
    " Write '{}', or '{}' with the two fields exchanged."
)


def test_a_condition_that_holds_everywhere_but_in_one_place(backend: StubBackend) -> None:
    message = MESSAGE.format("unequal", "m + 1 != K", "(m + 1 < K) | (m + 1 > K)", "m + 1 == K")
    call = unequal.with_backend(backend)
    assert refused(call, field(1), field(2), field(0), np.int32(3), offset_provider={}) == message
    assert refused(gtstub.compile, unequal, backend=backend) == message
    message = MESSAGE.format("outer", "I != 3", "(I < 3) | (I > 3)", "I == 3")
    assert refused(outer.with_backend(backend), field(1), field(2), field(0), offset_provider={}) == message


def test_what_to_write_in_its_place(backend: StubBackend) -> None:
    out = field(0), field(0), field(0)
    right.with_backend(backend)(field(1), field(2), out, np.int32(3), offset_provider={})
    expected = np.array([[1.0, 1, 1, 2, 1]] * 2)
    for each in out[:2]:
        np.testing.assert_array_equal(each.asnumpy(), expected)
    np.testing.assert_array_equal(out[2].asnumpy(), np.ones((2, 5)))
