"""
A model with a program of DaCe and one of gt4py, which a worker process builds. `python -m` with the name of a folder
also exports a granule of the first to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import dace
import gt4py.next as gtx
import numpy as np

import gtstub
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support import granule_programs
from tests.support.small_programs import I, K


def main(folder: str | None) -> None:
    mix = granule_programs.mix.with_backend(make_backend(gpu=False))
    gtstub.compile(mix, offset_provider={})
    relax = gtstub.program(dace.program(granule_programs.relax))
    x, y = np.arange(4.0), np.zeros(4)
    with gtstub.capture() as captured:
        relax(x, y, 0.5)
    if folder is not None:
        steps = {"run": gtstub.Step([*captured], "run")}
        gtstub.Granule("small", steps=steps, arguments={"x": x, "y": y}).export(Path(folder))
    a, out = (gtx.as_field([I, K], np.ones((2, 3))) for _ in range(2))
    mix(a, a, gtx.as_field([], np.array(1.0)), 2.0, out, offset_provider={})
    print("right" if np.array_equal(out.asnumpy(), np.full((2, 3), 3.0)) and np.array_equal(y, x / 2) else "WRONG")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
