"""
Builds twelve programs of examples/icon4py/programs.toml twice, by one process and by several, into caches that are
empty before: `python -m tests.benchmarks.build_set [JOBS]`. The ratio is that of the wall-clock times; what else runs
on the machine is in it, so the load before is printed as well.

The twelve are those of the steps of diffusion and velocity advection, in 15 variants. Left out are small programs,
which take no time, and the solvers, which take more than all others together.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples/icon4py/programs.toml"
LEFT_OUT = (
    "diffusion_utils:copy_field",
    "diffusion_utils:scale_k",
    "diffusion_utils:setup_fields_for_initial_step",
    "diffusion_utils:init_diffusion_local_fields_for_regular_timestep",
    "vertically_implicit_dycore_solver:",
    "nabla4",
)
"""What the source of a program has that is not measured."""

COMMAND = "from gtstub.cli.app import main; main()"


def measured() -> str:
    """The file without the programs that are left out."""
    default, *tables = PROGRAMS.read_text().split("[[program]]\n")
    kept = [table for table in tables if not any(name in table.partition("\n")[0] for name in LEFT_OUT)]
    return "[[program]]\n".join((default, *kept))


def measure(jobs: int) -> float:
    """Seconds that the set takes from the start of the command."""
    with tempfile.TemporaryDirectory() as empty:
        programs = Path(empty, "programs.toml")
        programs.write_text(measured())
        line = [sys.executable, "-c", COMMAND, "build", str(programs), "--cache", f"{empty}/cache", "--jobs", str(jobs)]
        load, before, begin = os.getloadavg()[0], _cpu_seconds(), time.monotonic()
        subprocess.run(line, cwd=ROOT, check=True)
        seconds = time.monotonic() - begin
    print(f"--jobs {jobs}: {seconds:.1f} s, {_cpu_seconds() - before:.1f} s of CPU; load before {load:.1f}", flush=True)
    return seconds


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    one, several = measure(1), measure(jobs)
    print(f"{one / several:.2f} times as fast with --jobs {jobs} as with --jobs 1")
