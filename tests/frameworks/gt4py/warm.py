"""
A model, as the tests of warm starts and run modes run it in a process of its own: `python warm.py WAY...` prints, as
JSON, what came out and what the process did.

Ways: compile (gtstub.compile), backend (gt4py's own call, with a backend made with custom options), setup (icon4py's
setup_program), own (compile, with a backend of gt4py's own), broken (two programs, of which one cannot be lowered),
call_broken (the same, and calls that one), model (calls while it sets up programs, then a time loop), lazy (calls one
of two variants), bind and capture. DA_MIN in the environment is a number of the grid; it is compiled in, or with
DA_MIN_FREE passed.
Between the ways, 'wait' calls gtstub.wait_for_compilation(), and 'wait_gt4py' gt4py's own.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.eve.utils import FrozenNamespace
from gt4py.next import backend as gtx_backend
from gt4py.next.otf import compiled_program, runners
from icon4py.model.common import model_backends

import gtstub
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.icon4py import setup_program

I = gtx.Dimension("I")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Plane = gtx.Field[[I, K], gtx.float64]
grid = FrozenNamespace(da_min=float(os.environ.get("DA_MIN", "0.5")))


@gtx.field_operator
def _damped(x: Plane, da_min: gtx.float64) -> Plane:
    return x / da_min


@gtx.program
def damped(x: Plane, da_min: gtx.float64, i_end: gtx.int32, k_end: gtx.int32, out: Plane):
    _damped(x, da_min, out=out, domain={I: (0, i_end), K: (0, k_end)})


@gtx.field_operator
def _damped_by_grid(x: Plane) -> Plane:
    return x / grid.da_min


@gtx.program
def damped_by_grid(x: Plane, i_end: gtx.int32, k_end: gtx.int32, out: Plane):
    _damped_by_grid(x, out=out, domain={I: (0, i_end), K: (0, k_end)})


def number_of_children() -> int:
    """The processes that this one has started and that have not ended."""
    count = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            count += int(file.read_text().rpartition(")")[2].split()[1]) == os.getpid()
    return count


def remove_nothing(sdfg: Any) -> None:
    """A hook, as users write them."""


def fields() -> tuple[Any, Any]:
    return gtx.as_field([I, K], np.full((6, 4), 3.0)), gtx.as_field([I, K], np.zeros((6, 4)))


SIZES = {"i_end": gtx.int32(6), "k_end": gtx.int32(4)}


def compiled(free: bool = False) -> gtstub.CompiledProgram:
    program: gtstub.CompiledProgram = gtstub.compile(
        damped,
        horizontal_sizes={"i_end": 6},
        vertical_sizes={"k_end": 4},
        **({} if free else {"bound_static_args": {"da_min": grid.da_min}}),
        backend_tag="CPU",
        offset_provider={},
    )
    return program


def compile_(x: Any, out: Any) -> None:
    free = "DA_MIN_FREE" in os.environ
    compiled(free)(x=x, out=out, **({"da_min": grid.da_min} if free else {}))


def backend(x: Any, out: Any) -> None:
    from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook

    hooks = {GT4PyAutoOptHook.TopLevelDataFlowPost: remove_nothing}
    custom = make_backend(gpu=False, optimization_args={"optimization_hooks": hooks})
    damped_by_grid.with_backend(custom)(x, **SIZES, out=out, offset_provider={})


def set_up() -> Any:
    return setup_program(
        program=damped_by_grid,
        backend=model_backends.CPU,
        horizontal_sizes={"i_end": SIZES["i_end"]},
        vertical_sizes={"k_end": SIZES["k_end"]},
        offset_provider={},
    )


def setup(x: Any, out: Any) -> None:
    set_up()(x=x, out=out)


def model(x: Any, out: Any) -> None:
    """Prints what it has done."""
    first = compiled()
    first(x=x, out=out)
    second = set_up()
    first(x=out, out=x)
    backend(out, x)
    print("set up", *np.unique(x.asnumpy()))
    for step in range(30):
        first(x=x, out=out)
        second(x=out, out=x)
        print(f"step {step}")


def lazy(x: Any, out: Any) -> None:
    """Calls one of two variants, and not a program that has only one."""
    program = gtstub.compile(damped, static_args={"da_min": [0.5, 0.25]}, backend_tag="CPU")
    gtstub.compile(damped_by_grid, backend_tag="CPU")
    program(x, 0.5, **SIZES, out=out, offset_provider={})


def bind(x: Any, out: Any) -> None:
    compiled().bind(x=x, out=out)
    print("bound")


def capture(x: Any, out: Any) -> None:
    program = compiled()
    with gtstub.capture():
        program(x=x, out=out)
    print("captured")


@gtx.program
def hopeless(x: Plane, out: Plane):
    _damped_by_grid(x, out=out[0:1])  # of two dimensions: lowering refuses it


def broken(x: Any, out: Any) -> None:
    """Nothing calls what comes of it, and nobody keeps it."""
    for program in (hopeless, damped_by_grid):
        gtstub.compile(program, backend_tag="CPU", offset_provider={})


def call_broken(x: Any, out: Any) -> None:
    broken(x, out)
    gtstub.compile(hopeless, backend_tag="CPU", offset_provider={})(x, out)


def own(x: Any, out: Any) -> None:
    """With a backend of gt4py's own."""
    gtstub.compile(damped_by_grid, backend_tag="DACE_CPU", offset_provider={})(x, **SIZES, out=out)


WAYS = (compile_, backend, setup, broken, call_broken, own, model, lazy, bind, capture)


def main() -> None:
    lowered: list[str] = []
    real = gtx_backend.Transforms.__call__

    def spy(self: Any, inp: Any) -> Any:
        tree = getattr(inp.data, "past_node", None)  # gtstub has parsed the program before
        lowered.append(inp.data.definition.__name__ if tree is None else str(tree.id))
        return real(self, inp)

    gtx_backend.Transforms.__call__ = spy  # type: ignore[method-assign]
    results = {}
    for way in sys.argv[1:]:
        if way in (waits := {"wait": gtstub.wait_for_compilation, "wait_gt4py": compiled_program.wait_for_compilation}):
            waits[way]()
            continue
        x, out = fields()
        ways = {each.__name__.removesuffix("_"): each for each in WAYS}
        ways[way](x, out)
        (results[way],) = np.unique(out.asnumpy()).tolist()
    done = {"results": results, "lowered": lowered, "children": number_of_children()}
    runners.reset_default_runner()
    print(json.dumps(done))


if __name__ == "__main__":
    main()
