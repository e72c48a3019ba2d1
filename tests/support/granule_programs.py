"""The programs of tests/support/granules.py."""

# No postponed annotations here: gt4py and DaCe evaluate the annotations of their programs.

import dace
import gt4py.next as gtx

from tests.support.small_programs import Plane

N = dace.symbol("N")


@gtx.field_operator
def _mix(a: Plane, b: Plane, scale: gtx.Field[gtx.Dims[()], gtx.float64], factor: gtx.float64) -> Plane:
    return a + factor * b * scale


@gtx.program
def mix(a: Plane, b: Plane, scale: gtx.Field[gtx.Dims[()], gtx.float64], factor: gtx.float64, out: Plane):
    _mix(a, b, scale, factor, out=out)


def relax(x: dace.float64[N], y: dace.float64[N], rate: dace.float64):
    """y becomes a part of x."""
    for i in dace.map[0:N]:
        y[i] = y[i] + rate * (x[i] - y[i])
