"""
A program that reads a zero-dimensional field as a scalar: python -m tests.gpu.device.zero_dimensional [cpu]. Its call
waits for what its stream has written to the field, so it cannot be captured. With 'cpu' there is no stream.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import gt4py.next as gtx
import numpy as np

import gtstub
from gtstub.frameworks.gt4py import make_backend
from tests.gpu.device import arrays

IS_GPU = sys.argv[1:] != ["cpu"]
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)


@gtx.field_operator
def _scale(a: gtx.Field[[K], gtx.float64], factor: gtx.Field[[], gtx.float64]) -> gtx.Field[[K], gtx.float64]:
    return factor * a


@gtx.program(backend=make_backend(gpu=IS_GPU))
def scale(a: gtx.Field[[K], gtx.float64], factor: gtx.Field[[], gtx.float64], out: gtx.Field[[K], gtx.float64]):
    _scale(a, factor, out=out)


def main() -> None:
    allocate: dict[str, Any] = {"allocator": scale.backend}
    a, out = (gtx.as_field([K], np.arange(10.0), **allocate) for _ in range(2))
    factor = gtx.as_field([], np.array(2.0), **allocate)

    def call() -> None:
        scale(a, factor, out, offset_provider={})

    call()
    assert out.asnumpy().tolist() == (2 * np.arange(10.0)).tolist()
    if not IS_GPU:
        print("> read")
        return

    gpu = arrays.find()
    stream = gpu.stream()
    with gtstub.stream(stream):
        call()
        gpu.wait(stream)
        gate = gpu.gate(stream)
        gpu.fill(factor.ndarray, 3.0, stream)
        opening = threading.Timer(0.2, gate.open)
        opening.start()
        call()
        gpu.wait(stream)
        opening.join()
    assert out.asnumpy().tolist() == (3 * np.arange(10.0)).tolist()
    print("> read")


if __name__ == "__main__":
    main()
