"""
What each rank of test_ranks.py runs that compiles a program of gt4py's: says whether it lowered it, and what came out.

    python ranks_gt4py.py RESULTS   RESULTS: a directory
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gt4py.next as gtx
import numpy as np
from mpi4py import MPI  # here, as most models have it: gt4py's build processes import it too, and must not become ranks

import gtstub
from gtstub import ranks

I = gtx.Dimension("I")
Line = gtx.Field[[I], gtx.float64]


@gtx.field_operator
def _scale(x: Line, factor: gtx.float64) -> Line:
    return factor * x


@gtx.program
def scale(x: Line, factor: gtx.float64, out: Line, end: gtx.int32) -> None:  # type: ignore[valid-type]
    _scale(x, factor, out=out, domain={I: (0, end)})


def main(results: Path) -> None:
    from gtstub.frameworks.gt4py import target
    from gtstub.frameworks.mpi import use_communicator

    use_communicator(MPI.COMM_WORLD)
    lowered = []
    make_task = target.compilation_tasks.make_compilation_task

    def counting(backend, stage, args):  # type: ignore[no-untyped-def]
        lowered.append(stage)
        return make_task(backend, stage, args)

    target.compilation_tasks.make_compilation_task = counting
    compiled = gtstub.compile(
        scale,
        horizontal_sizes={"end": 10},
        static_args={"factor": [2.0]},
        backend_tag="CPU",
        offset_provider={},
    )
    x, out = gtx.as_field([I], np.arange(10.0)), gtx.as_field([I], np.zeros(10))
    ours = ranks.current()
    gtstub.wait_for_compilation()
    compiled(x, 2.0, out)
    path = compiled.variants[0].result.result().path
    said = {"rank": ours.rank, "lowered": len(lowered), "sum": float(out.asnumpy().sum()), "cache": str(path.parent)}
    (results / f"{ours.rank}.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":  # a process that builds may import this file
    main(Path(sys.argv[1]))
