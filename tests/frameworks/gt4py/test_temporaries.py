"""Kept arrays of granules that need no content at the start: fields of gt4py with an origin, and parts of domains."""

from __future__ import annotations

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.programs.granule.temporaries import temporaries

I, K = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Plane = gtx.Field[[I, K], gtx.float64]
FIRST, LAST, LEVELS = -3, 9, 2


@gtx.field_operator
def _double(x: Plane) -> Plane:
    return 2.0 * x


@gtx.program
def double(x: Plane, out: Plane, first: gtx.int32, last: gtx.int32):  # type: ignore[no-untyped-def,valid-type]
    _double(x, out=out, domain={I: (first, last), K: (0, 2)})


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        ([(-3, 9)], (-3, 9), {"z"}),
        ([(-2, 9)], (-3, 9), set()),
        ([(-2, 8)], (-2, 8), {"z"}),
        ([(-2, 8)], (-2, 9), set()),
        ([(0, 9), (-3, 0)], (-3, 9), {"z"}),
        ([(0, 9), (-3, -1)], (-3, 9), set()),
        ([(4, 4)], (5, 3), {"z"}),  # nothing
    ],
)
def test_domains(written: list[tuple[int, int]], read: tuple[int, int], expected: set[str]) -> None:
    compiled = gtstub.compile(double, backend_tag="CPU", offset_provider={})
    domain = gtx.domain({I: (FIRST, LAST), K: (0, LEVELS)})
    random = np.random.default_rng(4)
    a, z, out = (gtx.as_field(domain, random.uniform(1.0, 2.0, (LAST - FIRST, LEVELS))) for _ in range(3))
    step = gtstub.Step([*(compiled.bind(a, z, *ends) for ends in written), compiled.bind(z, out, *read)])
    granule = gtstub.Granule("test", steps={"run": step}, arguments={"a": a, "out": out}, kept={"of": {"z": z}})
    collected = granule._collect()
    found = {collected.description.arrays[number].name for number in temporaries(collected, granule._named())}
    assert found == {f"of_{name}" for name in expected}
