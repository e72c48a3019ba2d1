"""Builds and runs the Fortran host that repeats time steps of the model, dycore_host.f90."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from rich.console import Console

from gtstub import install
from gtstub.entries.toolchain import compiler
from gtstub.programs.granule.verify import read_granule

FIRST = 4
"""The first time step that is exported: all its calls are known steps, as are those of the next one."""

STEPS = 20
"""Time steps that the host repeats."""


def run_host(folder: Path, console: Console) -> list[str]:
    """Runs the granule in a folder that examples/model/granule.py has written; returns what went wrong."""
    console.rule("Fortran, over the exported granule")
    build = folder / "host"
    cmake = compiler.find_cmake()
    source = Path(__file__).parent
    options = {"CMAKE_PREFIX_PATH": install.FOLDER, "GRANULE": (folder / "granule").absolute()}
    for command in (
        [cmake, "-S", source, "-B", build, *(f"-D{name}={value}" for name, value in options.items())],
        [cmake, "--build", build],
        [build / "dycore_host", folder, STEPS],
    ):
        done = _run(command)
        if done.returncode != 0:
            return [f"{done.stdout}{done.stderr}\nThis failed: {' '.join(map(str, command))}"]
    console.print(done.stdout.strip())
    console.print(_sizes(folder))
    return []


def _run(command: list[Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)


def _sizes(folder: Path) -> str:
    """What the granule has, and how many lines are written by hand."""
    granule = read_granule(folder / "granule")
    source = (Path(__file__).parent / "dycore_host.f90").read_text(encoding="utf-8").splitlines()
    lines = sum(bool(line.strip()) and not line.strip().startswith("!") for line in source)
    positions = sum(len(step.positions) for step in granule.steps)
    kept = (folder / "granule" / "kept.bin").stat().st_size
    return (
        f"{len(granule.steps)} steps of {positions} positions, {len(granule.programs)} programs, {len(granule.arrays)} "
        f"arrays, of which {len(granule.arguments)} are the host's; kept.bin has {kept / 2**20:.1f} MiB; the host has "
        f"{lines} lines"
    )
