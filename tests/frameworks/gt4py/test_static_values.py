"""Values of static arguments: what tells them apart, and which ones fit a type."""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.frameworks.gt4py.backend import StubBackend
from tests.support.small_programs import I

Line = gtx.Field[[I], gtx.float64]


@gtx.field_operator
def _scale(a: Line, s: gtx.float64, t: gtx.float32, n: gtx.int32, up: bool) -> Line:
    return a * s if up else a * s * 2.0


@gtx.program
def scale(a: Line, s: gtx.float64, t: gtx.float32, n: gtx.int32, up: bool, out: Line):
    _scale(a, s, t, n, up, out=out)


def compiled(backend: StubBackend, **values: Any) -> Any:
    static = {"s": [1.0], "t": [1.0], "n": [1], "up": [True]}
    return gtstub.compile(scale, backend=backend, static_args=static | values, offset_provider={})


def called(program: Any, s: Any, n: Any = 1, up: Any = True) -> Any:
    out = gtx.as_field([I], np.full(2, 9.0))
    program(a=gtx.as_field([I], np.array([1.0, 2.0])), s=s, t=1.0, n=n, up=up, out=out)
    return out.asnumpy()


def test_zeros_of_both_signs_are_two_values(backend: StubBackend) -> None:
    program = compiled(backend, s=[0.0, -0.0, float("nan")])
    for value in (0.0, -0.0, np.float64(-0.0)):
        np.testing.assert_array_equal(np.signbit(called(program, value)), np.signbit(value))
    assert np.isnan(called(program, np.nan)).all()
    program.compile(s=[2.0], t=[1.0], n=[1], up=[True])
    assert list(called(program, 2)) == [2, 4]
    with pytest.raises(ValueError, match=r"Static argument 's' of program 'scale' has nan twice in its list\."):
        compiled(backend, s=[float("nan"), np.nan])
    with pytest.raises(ValueError, match=r"has -0\.0 twice in its list\."):
        compiled(backend, s=[0.0, -0.0, -0.0])


def test_values_of_other_types(backend: StubBackend) -> None:
    program = compiled(backend, s=[True], n=[1.0, np.float32(2)], up=[1, np.int8(0)])
    assert list(called(program, 1, n=True, up=np.bool_(True))) == [1, 2]
    assert list(called(program, 1.0, n=2.0, up=0)) == [2, 4]
    with pytest.raises(ValueError, match=r"was not compiled for \(s=1\.0, t=1\.0, n=3\.0, up=True\)"):
        called(program, 1.0, n=3.0)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"t": [1e39]}, ValueError, "'t' of program 'scale' is 1e+39, which does not fit 'float32'."),
        ({"t": [10**39]}, ValueError, f"is {10**39}, which does not fit 'float32'."),
        ({"s": [10**400]}, ValueError, "is an integer of too many digits, which does not fit 'float64'."),
        ({"s": [10**5000]}, ValueError, "is an integer of too many digits, which does not fit 'float64'."),
        ({"n": [-(10**5000)]}, ValueError, "is an integer of too many digits, which does not fit 'int32'."),
        ({"s": [np.longdouble("1e400")]}, ValueError, "is 1e+400, which does not fit 'float64'."),
        ({"n": [1e10]}, ValueError, "is 10000000000.0, which does not fit 'int32'."),
        ({"n": [1.5]}, TypeError, "must be an 'int32', not 'float'."),
        ({"n": [float("nan")]}, TypeError, "must be an 'int32', not 'float'."),
        ({"up": [2]}, ValueError, "is 2, which does not fit 'bool'."),
        ({"up": ["yes"]}, TypeError, "must be a 'bool', not 'str'."),
    ],
)
def test_values_that_do_not_fit(
    values: dict[str, Any], error: type[Exception], message: str, backend: StubBackend
) -> None:
    with pytest.raises(error) as caught:
        compiled(backend, **values)
    assert message in str(caught.value)


def test_infinity_is_a_value_of_its_own(backend: StubBackend) -> None:
    program = compiled(backend, s=[float("inf"), -float("inf")])
    for value in (np.inf, -np.inf):
        assert list(called(program, value)) == [value, value]
