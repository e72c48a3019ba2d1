"""
icon4py's apply_diffusion_to_vn on the simple grid: built twice, through gt4py's own DaCe backend and through gtstub's,
called with the same random fields, compared with gt4py's embedded execution, and timed. It ends with a page about the
program.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # On 27 edges threads only add noise.
os.environ.setdefault("GT4PY_BUILD_JOBS_MODE", "serial")  # A pool of compiling processes does not pay for one program.

import gt4py.next as gtx
import numpy as np
from gt4py.next import common
from gt4py.next.otf.arguments import CompileTimeArgs
from gt4py.next.program_processors.runners.dace import make_dace_backend
from icon4py.model.atmosphere.diffusion.stencils.apply_diffusion_to_vn import apply_diffusion_to_vn
from icon4py.model.common import dimension as dims
from icon4py.model.common.grid import simple
from rich.console import Console
from rich.table import Table

from gtstub.cli.tables.plan import print_slots
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature import documents
from gtstub.tools.report.entry import report
from gtstub.tools.report.page import program_page
from gtstub.util.atomic import write

ROUNDS, CALLS = 60, 200

OPTIONS = {"gpu": False, "auto_optimize": False, "unstructured_horizontal_has_unit_stride": True}

console = Console()


@contextmanager
def step(what: str) -> Iterator[None]:
    """A spinner while a long step runs, and how long it took."""
    start = time.perf_counter()
    with console.status(what):
        yield
    console.print(f"[green]done[/green] {what} ({time.perf_counter() - start:.1f} s)", highlight=False)


def make_arguments() -> dict[str, Any]:
    """Random fields on the simple grid, horizontal index contiguous as icon4py allocates them."""
    random = np.random.default_rng(42)
    grid = simple.simple_grid()
    size = {
        dims.VertexDim: grid.num_vertices,
        dims.EdgeDim: grid.num_edges,
        dims.KDim: grid.num_levels,
        dims.E2C2VDim: 4,
    }
    arguments: dict[str, Any] = {}
    for name, type_ in apply_diffusion_to_vn.__gt_type__().definition.pos_or_kw_args.items():
        if hasattr(type_, "dims"):
            values = np.asfortranarray(random.uniform(0.5, 1.5, [size[dim] for dim in type_.dims]))
            arguments[name] = common._field(values, domain={dim: (0, size[dim]) for dim in type_.dims})
    return arguments | {
        "nudgezone_diff": 0.1,
        "fac_bdydiff_v": 0.2,
        "start_2nd_nudge_line_idx_e": gtx.int32(6),
        "limited_area": True,
        "horizontal_start": gtx.int32(0),
        "horizontal_end": gtx.int32(grid.num_edges),
        "vertical_start": gtx.int32(0),
        "vertical_end": gtx.int32(grid.num_levels),
    }


def sizes_of(arguments: dict[str, Any]) -> dict[str, int]:
    """The sizes of the horizontal and vertical dimensions of fields."""
    fields = [value for value in arguments.values() if hasattr(value, "domain")]
    return {
        dim.value: len(unit_range)
        for field in fields
        for dim, unit_range in zip(field.domain.dims, field.domain.ranges, strict=True)
        if dim.kind != common.DimensionKind.LOCAL
    }


def numbers_of(arguments: dict[str, Any]) -> dict[str, int]:
    """The integers, on which sizes may depend."""
    return {name: int(value) for name, value in arguments.items() if isinstance(value, np.integer)}


def measure(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds that each call takes: the best of many rounds, in which all take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / CALLS)
    return best


def main() -> int:
    warnings.filterwarnings("ignore", "(?s).*(Python execution|optimized mode)")  # both are meant here
    connectivities = simple.simple_grid().connectivities
    arguments = make_arguments()
    compile_time = CompileTimeArgs.from_concrete(*arguments.values(), offset_provider=connectivities)
    definition = ConcreteProgramDef(data=apply_diffusion_to_vn.definition_stage, args=compile_time)

    ours, theirs = make_backend(**OPTIONS), make_dace_backend(**OPTIONS)
    with step("gtstub's backend: lower apply_diffusion_to_vn, generate the stub, build both libraries"):
        artifact = ours.executor(ours.transforms(definition))
        stub = ours.load_artifact(artifact)
    with step("gt4py's DaCe backend: lower apply_diffusion_to_vn, build the library"):
        executable = theirs.load_artifact(theirs.executor(theirs.transforms(definition)))

    signatures = [artifact.path / name for name in ("sdfg.json", "program.json")]
    plan = make_plan(
        documents.sdfg_from_json(signatures[0].read_text(encoding="utf-8"), str(signatures[0])),
        documents.program_from_json(signatures[1].read_text(encoding="utf-8"), str(signatures[1])),
    )
    print_slots(plan)

    expected, found = make_arguments(), make_arguments()
    with step("gt4py's embedded execution, for comparison"):
        apply_diffusion_to_vn.with_backend(None)(**expected, offset_provider=connectivities)
    with step("gtstub's backend, called as any gt4py program"):
        apply_diffusion_to_vn.with_backend(ours)(**found, offset_provider=connectivities)
    before, after, wanted = (fields["vn"].asnumpy() for fields in (arguments, found, expected))
    error = float(np.max(np.abs(after - wanted) / np.abs(wanted)))
    is_correct = error < 1e-12 and not np.array_equal(before, after)
    verdict = "[green]the same[/green]" if is_correct else "[red]different[/red]"
    console.print(f"result: {verdict}, largest relative difference {error:.1e}\n", highlight=False)

    values = tuple(arguments.values())
    clocked = artifact.load()
    clocked.metrics_level = 10  # gt4py builds a clock into the SDFG, which runs at this level
    kernel_times: list[float] = []

    def call_clocked() -> None:
        clocked(*values, offset_provider=connectivities)
        kernel_times.append(clocked.compute_time)

    with step(f"{ROUNDS} rounds of {CALLS} calls of each"):
        best = measure(
            {
                "gt4py": lambda: executable(*values, offset_provider=connectivities),
                "gtstub": lambda: stub(*values, offset_provider=connectivities),
                "clock": call_clocked,
            }
        )
    kernel = min(kernel_times)
    table = Table("call of apply_diffusion_to_vn", "whole", "overhead")
    for title, seconds in (("gt4py's DaCe backend", best["gt4py"]), ("gtstub", best["gtstub"])):
        table.add_row(title, f"{seconds * 1e6:.2f} us", f"{(seconds - kernel) * 1e6:.2f} us")
    console.print(table)
    console.print(
        f"The SDFG itself takes {kernel * 1e6:.2f} us by its own clock; the rest is overhead, with what it costs Python"
        " to make a call. 'python -O' makes gt4py's call faster; 'make bench' measures all of it against a library that"
        " does nothing.",
        highlight=False,
    )
    page = Path(os.environ.get("GT4PY_BUILD_CACHE_DIR", ".")) / "report.html"
    write(page, program_page(report(artifact.path, dimensions=sizes_of(arguments), symbols=numbers_of(arguments))))
    cache = os.path.relpath(artifact.path.parent)
    console.print(f"Look inside:\n  .venv/bin/gtstub show {plan.name} --cache {cache} --code", soft_wrap=True)
    console.print(f"A page about the program, as 'gtstub report' writes it:\n  {os.path.relpath(page)}", soft_wrap=True)
    return 0 if is_correct else 1


if __name__ == "__main__":
    sys.exit(main())
