"""
A script with one gt4py program, from the start of its process to its first result, as starts.py runs it.

    python start_model.py gtstub | incumbent | cold FOLDER NUMBER | artifact FOLDER
"""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

import gt4py.next as gtx
import numpy as np

I = gtx.Dimension("I")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Plane = gtx.Field[[I, K], gtx.float64]


@gtx.field_operator
def _relaxed(x: Plane, towards: Plane, weight: gtx.float64) -> Plane:
    return (1.0 - weight) * x + weight * towards


@gtx.program
def relax(x: Plane, towards: Plane, weight: gtx.float64, i_end: gtx.int32, k_end: gtx.int32):
    _relaxed(x, towards, weight, out=x, domain={I: (0, i_end), K: (0, k_end)})


def field(value: float) -> gtx.Field:
    return gtx.as_field([I, K], np.full((50, 60), value))


def through_gtstub() -> None:
    import gtstub

    program = gtstub.compile(
        relax,
        horizontal_sizes={"i_end": 50},
        vertical_sizes={"k_end": 60},
        bound_static_args={"weight": 0.5},
        bound_args={"towards": field(1.0)},
        backend_tag="CPU",
        offset_provider={},
    )
    x = field(0.0)
    program(x)
    assert x.asnumpy().min() == 0.5


def through_gt4py() -> None:
    from gt4py.next.program_processors.runners.dace import run_dace_cpu

    sizes = {"i_end": gtx.int32(50), "k_end": gtx.int32(60), "weight": gtx.float64(0.5)}
    program = relax.with_backend(run_dace_cpu).with_compilation_options(enable_jit=False)
    program.compile(offset_provider={}, k_end=[sizes["k_end"]], weight=[sizes["weight"]])
    x = field(0.0)
    program(x, field(1.0), **sizes, offset_provider={})
    assert x.asnumpy().min() == 0.5


def keep_artifact(folder: Path) -> None:
    """What gt4py's own backend passes from the process that compiles to the one that loads; prints its library."""
    from gt4py.next.otf import arguments, compilation_tasks
    from gt4py.next.program_processors.runners.dace import run_dace_cpu

    types = relax.__gt_type__().definition.pos_or_kw_args
    args = arguments.CompileTimeArgs(
        args=tuple(types.values()), kwargs={}, offset_provider={}, column_axis=None, argument_descriptor_contexts={}
    )
    task = compilation_tasks.make_compilation_task(run_dace_cpu, relax.definition_stage, args)
    artifact = task.compile()
    (folder / "artifact.pickle").write_bytes(pickle.dumps(artifact))
    print(artifact.library_path)


def together(folder: Path, number: str) -> None:
    """One of many processes that start at once on an empty cache: prints when it had its first result."""
    (folder / f"ready-{number}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    through_gtstub()
    print(time.time())


if __name__ == "__main__":
    way, *rest = sys.argv[1:]
    if way == "cold":
        together(Path(rest[0]), rest[1])
    elif way == "artifact":
        keep_artifact(Path(rest[0]))
    else:
        {"gtstub": through_gtstub, "incumbent": through_gt4py}[way]()
