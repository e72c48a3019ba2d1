"""Programs that tests build ahead of time. `needs_grid` cannot be lowered without an offset provider."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

import os
import signal
import subprocess
import sys
from pathlib import Path

import gt4py.next as gtx
import numpy as np
from gt4py.next import neighbor_sum

I = gtx.Dimension("I")
Vertex = gtx.Dimension("Vertex")
Edge = gtx.Dimension("Edge")
V2EDim = gtx.Dimension("V2E", kind=gtx.DimensionKind.LOCAL)
V2E = gtx.FieldOffset("V2E", source=Edge, target=(Vertex, V2EDim))

Line = gtx.Field[gtx.Dims[I], gtx.float64]
OnEdges = gtx.Field[gtx.Dims[Edge], gtx.float64]
OnVertices = gtx.Field[gtx.Dims[Vertex], gtx.float64]


@gtx.field_operator
def _relax(x: Line, weight: gtx.float64, nudging: bool) -> Line:
    return weight * x if nudging else x


@gtx.program
def relax(x: Line, weight: gtx.float64, nudging: bool, end: gtx.int32):
    _relax(x, weight, nudging, out=x, domain={I: (0, end)})


@gtx.field_operator
def _relax_often(x: Line, weight: gtx.float64) -> Line:
    y = weight * x + x * x - weight * x * x
    return weight * y + y * y * x - weight * y * y


@gtx.program
def relax_often(x: Line, weight: gtx.float64, end: gtx.int32):
    _relax_often(x, weight, out=x, domain={I: (0, end)})


@gtx.field_operator
def _needs_grid(x: OnEdges) -> OnVertices:
    return neighbor_sum(x(V2E), axis=V2EDim)


@gtx.program
def needs_grid(x: OnEdges, out: OnVertices):
    _needs_grid(x, out=out)


def grid():
    table = np.zeros((3, 2), dtype=np.int32)
    return {"V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=table)}


def other_grid():
    table = np.ones((3, 2), dtype=np.int32)
    return {"V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=table)}


def memory_hog():
    """What the kernel does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def endless():
    """Never ends by itself, nor does the compiler that it starts; leaves both their numbers in the folder ENDLESS."""
    compiler = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    for pid in (compiler.pid, os.getpid()):
        Path(os.environ["ENDLESS"], str(pid)).touch()
    while True:
        signal.pause()
