"""
icon4py's diffusion and velocity advection on a tiny torus, through gt4py's DaCe backend and through gtstub. Are the
results the same, and how long does a step take?

    make granule [ARGS='LEVELS...']    builds what is not there yet, compares, measures, and writes docs/performance.md
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from examples.granule import report
from examples.granule.granules import Diffusion, Granule, VelocityAdvection, fields
from examples.granule.sdfg_calls import Loops, record
from examples.granule.steps import Observer
from examples.granule.timing import Clock, Side
from examples.granule.torus import Torus
from examples.granule.ways import WAYS, Gtstub, descriptor
from tests.benchmarks.measure import load_module
from tests.benchmarks.peers import build_caller

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "granule"
GRANULES = (Diffusion, VelocityAdvection)
LEVELS = (10,)
"""Static, as icon4py has all sizes: each number of levels is built for itself."""

STEPS = 10

console = Console(highlight=False)


# --- Comparing --------------------------------------------------------------------------------------------------------


def compare(expected: Granule, found: Granule, observer: Observer, steps: int = STEPS) -> list[str]:
    """Makes the same steps with both; returns what differs, is not finite, or has no effect."""
    problems: dict[str, str] = {}
    for number in range(steps):
        expected.step(number)
        if number == 0:
            calls = observer.observe(lambda: found.step(0))
            problems |= {call.name: f"'{call.name}' changed nothing" for call in calls if not call.has_effect}
        else:
            found.step(number)
        wanted = fields(expected)
        for name, array in fields(found).items():
            if array.tobytes() != wanted[name].tobytes():
                difference = np.abs(array - wanted[name])
                relative = difference / np.maximum(np.abs(wanted[name]), np.finfo(float).tiny)
                sizes = f"by at most {np.max(difference):.1e}, relative {np.max(relative):.1e}"
                problems.setdefault(name, f"'{name}' differs after step {number} {sizes}")
            if not np.isfinite(array).all():
                problems.setdefault(name, f"'{name}' is not finite after step {number}")
    return list(problems.values())


# --- All of it --------------------------------------------------------------------------------------------------------


def set_up(levels: int) -> tuple[dict[tuple[str, str], Granule], dict[tuple[str, str], Observer]]:
    """
    All granules by their names and the way, and what stands between them and `setup_program`.

    One way after the other: gt4py may lower a program differently the next time, but what it has lowered once stays in
    its cache, so that both build the same SDFG.
    """
    granules: dict[tuple[str, str], Granule] = {}
    observers: dict[tuple[str, str], Observer] = {}
    for way in WAYS:
        for kind in GRANULES:
            observer = observers[kind.name, way.name] = Observer(way.setup_program)
            granules[kind.name, way.name] = kind(Torus(levels), descriptor(way), observer.setup_program)
        way.wait_for_compilation()
    return granules, observers


def run(levels: int, caller: Any) -> Iterator[report.Measured]:
    begin = time.monotonic()
    console.print(f"{levels} levels: lowering and building what is not there yet")
    granules, observers = set_up(levels)
    console.print(f"All programs are there after {time.monotonic() - begin:.0f} s")
    for kind in GRANULES:
        gt4py, gtstub = (granules[kind.name, way.name] for way in WAYS)
        problems = compare(gt4py, gtstub, observers[kind.name, "gtstub"])
        for problem in problems:
            console.print(f"[red]{kind.name}: {problem}[/red]")
        if not problems:
            console.print(f"[green]{kind.name}: identical: {len(fields(gtstub))} fields, {STEPS} steps[/green]")
        sides = [_side(granules[kind.name, way.name], observers[kind.name, way.name]) for way in WAYS]
        calls = sides[1].calls
        sdfg_calls = [record(call, Gtstub.entry_of(call), FOLDER / "recording") for call in calls]
        loops = Loops(sdfg_calls, FOLDER / f"{kind.__name__}_{levels}.c")
        console.print(f"Measuring {kind.name}")
        times = Clock(caller).measure(*sides, loops)
        yield report.Measured(
            f"{kind.name}, {levels} levels", [call.name for call in calls], times, len(fields(gtstub)), STEPS, problems
        )


def main() -> int:
    warnings.filterwarnings("ignore", "(?s).*(Python execution|optimized mode)")  # both are meant here
    FOLDER.mkdir(parents=True, exist_ok=True)
    caller = load_module("caller", build_caller(FOLDER))
    measured = [one for levels in map(int, sys.argv[1:] or LEVELS) for one in run(levels, caller)]
    report.show(measured, console)
    if any(one.problems for one in measured):
        return 1
    report.write(measured, ROOT)
    console.print("Written to docs/performance.md.")
    return 0


def _side(granule: Granule, observer: Observer) -> Side:
    calls = observer.observe(lambda: granule.step(2))
    observer.release(granule.granule)
    return Side(granule, calls)


if __name__ == "__main__":
    sys.exit(main())
