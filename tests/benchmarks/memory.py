"""
What the memory of SDFGs costs: calls and page faults with the pool, without it, and with gt4py's own DaCe backend.

Every way has a process of its own, because the allocator belongs to the process. The processes run one after the other,
several times in turns; the fastest call of each counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any, Final

PROGRAMS: Final = {
    "apply_diffusion_to_vn": "icon4py.model.atmosphere.diffusion.stencils.apply_diffusion_to_vn",
    "vertically_implicit_solver_at_predictor_step": (
        "icon4py.model.atmosphere.dycore.stencils.vertically_implicit_dycore_solver"
    ),
    "vertically_implicit_solver_at_corrector_step": (
        "icon4py.model.atmosphere.dycore.stencils.vertically_implicit_dycore_solver"
    ),
}

WAYS: Final = {
    "gt4py": ("gt4py", {}),
    "glibc": ("gtstub", {"GTSTUB_POOL": "off"}),
    "thresholds": (
        "gtstub",
        {"GTSTUB_POOL": "off", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_MMAP_THRESHOLD_": "4294967296"},
    ),
    "mimalloc": (
        "gtstub",
        {
            "GTSTUB_POOL": "off",
            "LD_PRELOAD": "libmimalloc.so.2",
            "MIMALLOC_ALLOW_DECOMMIT": "0",
            "MIMALLOC_PAGE_RESET": "0",
        },
    ),
    "jemalloc": (
        "gtstub",
        {
            "GTSTUB_POOL": "off",
            "LD_PRELOAD": "libjemalloc.so.2",
            "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0",
        },
    ),
    "pool": ("gtstub", {}),
}
"""
The backend and the environment of each way. 'thresholds', 'mimalloc' and 'jemalloc' keep memory, too; the last two are
Debian's packages libmimalloc2.0 and libjemalloc2.
"""


@dataclasses.dataclass(frozen=True)
class Case:
    program: str
    edges: int
    levels: int
    optimized: bool
    threads: int
    calls: int

    def __str__(self) -> str:
        kind = "optimized" if self.optimized else "not optimized"
        return f"{self.program}, {self.edges} edges, {self.levels} levels, {kind}, {self.threads} threads"


def arguments_of(program: Any, edges: int, levels: int) -> dict[str, Any]:
    """Random fields, the horizontal index contiguous as icon4py allocates them; scalars that a program accepts."""
    import gt4py.next as gtx
    import numpy as np
    from gt4py.next import common
    from gt4py.next.type_system import type_specifications as ts

    random = np.random.default_rng(42)
    sizes = {"Edge": edges, "Cell": edges * 2 // 3, "Vertex": edges // 3, "K": levels + 1, "E2C2V": 4, "C2E": 3}
    cells = sizes["Cell"]
    numbers = {"horizontal_end": edges, "end_cell_index_local": cells, "end_cell_index_halo_lvl1": cells}
    numbers |= {"vertical_end": levels, "vertical_end_index_model_surface": levels + 1}
    numbers |= {"start_2nd_nudge_line_idx_e": 5, "end_index_of_damping_layer": 5, "flat_level_index_plus1": 10}
    found: dict[str, Any] = {}
    for name, type_ in program.__gt_type__().definition.pos_or_kw_args.items():
        if isinstance(type_, ts.FieldType):
            shape = [sizes[dim.value] for dim in type_.dims]
            kind = np.dtype(type_.dtype.kind.name.lower())
            values = np.asfortranarray(random.uniform(0.5, 1.5, shape)).astype(kind)
            found[name] = common._field(values, domain=dict(zip(type_.dims, ((0, n) for n in shape), strict=True)))
        elif type_.kind.name == "BOOL":
            found[name] = True
        elif type_.kind.name.startswith("INT"):
            found[name] = gtx.int32(numbers.get(name, 0))
        else:
            found[name] = 0.1
    return found


def tables_of(edges: int) -> dict[str, Any]:
    import numpy as np
    from gt4py.next import common
    from icon4py.model.common import dimension as dims

    def table(source: Any, local: Any, codomain: Any, rows: int, columns: int, targets: int) -> Any:
        indices = (np.arange(rows)[:, None] // (rows // targets or 1) + np.arange(columns)) % targets
        values = np.asfortranarray(indices.astype(np.int32))
        return common._connectivity(values, codomain=codomain, domain={source: (0, rows), local: (0, columns)})

    cells, vertices = edges * 2 // 3, edges // 3
    return {
        "E2C2V": table(dims.EdgeDim, dims.E2C2VDim, dims.VertexDim, edges, 4, vertices),
        "C2E": table(dims.CellDim, dims.C2EDim, dims.EdgeDim, cells, 3, edges),
    }


def measure(case: Case, backend: str) -> dict[str, float]:
    """
    In this process: seconds of the fastest warm call, and of the fastest one with an empty pool; page faults of a warm
    call; the peak memory in bytes.
    """
    import importlib

    from gt4py.next.program_processors.runners.dace import make_dace_backend

    import gtstub
    from gtstub.frameworks.gt4py import make_backend

    make = make_backend if backend == "gtstub" else make_dace_backend
    program = getattr(importlib.import_module(PROGRAMS[case.program]), case.program)
    options = {"gpu": False, "auto_optimize": case.optimized, "unstructured_horizontal_has_unit_stride": True}
    called = program.with_backend(make(**options))
    arguments = arguments_of(program, case.edges, case.levels)
    tables = tables_of(case.edges)
    times = []
    for _ in range(3):
        called(**arguments, offset_provider=tables)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(case.calls):
        begin = time.perf_counter()
        called(**arguments, offset_provider=tables)
        times.append(time.perf_counter() - begin)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    faults = (usage.ru_minflt - before) / case.calls
    first = []
    for _ in range(3):
        gtstub.pool()
        begin = time.perf_counter()
        called(**arguments, offset_provider=tables)
        first.append(time.perf_counter() - begin)
    return {"seconds": min(times), "first": min(first), "faults": faults, "peak": usage.ru_maxrss * 1024.0}


def run(case: Case, way: str) -> dict[str, float]:
    backend, variables = WAYS[way]
    command = [sys.executable, "-O", "-m", __spec__.name, "--child", json.dumps([dataclasses.asdict(case), backend])]
    environment = os.environ | {"OMP_NUM_THREADS": str(case.threads), "GT4PY_BUILD_JOBS_MODE": "serial", **variables}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    parser.add_argument("--size", action="append", metavar="EDGES,LEVELS")
    parser.add_argument("--threads", action="append", type=int)
    parser.add_argument("--optimized", action="store_true")
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.child:
        case, backend = json.loads(options.child)
        print(json.dumps(measure(Case(**case), backend)))
        return 0
    for name in options.program or ["apply_diffusion_to_vn"]:
        for size in options.size or ["1920,35", "30720,65"]:
            for threads in options.threads or [1, 2]:
                edges, levels = map(int, size.split(","))
                case = Case(name, edges, levels, options.optimized, threads, 300 if edges < 10_000 else 10)
                ways = options.way or list(WAYS)
                rounds = [{way: run(case, way) for way in ways} for _ in range(options.rounds)]
                print(case)
                for way in ways:
                    found = [each[way] for each in rounds]
                    seconds, faults = min(one["seconds"] for one in found), max(one["faults"] for one in found)
                    first = min(one["first"] for one in found)
                    peak = max(one["peak"] for one in found) / 2**20
                    times = f"{seconds * 1e3:9.3f} ms  {first * 1e3:9.3f} ms with an empty pool"
                    print(f"  {way:12} {times}  {faults:10.1f} faults  {peak:7.0f} MiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
