"""
Runs icon4py's driver through gtstub on a grid that is made here:

    make model                                  R02B02, 35 levels, 3 time steps of 5 substeps
    make model ARGS='R02B03 65 --steps 20'      another grid, more levels and time steps
    make model ARGS=--compare                   also through gt4py's DaCe and GTFN backends
    make model ARGS='--compare dace'            also through gt4py's DaCe backend alone, with equal results
    make model ARGS=--export                    exports the time loop as a granule, and repeats 20 steps from Fortran

It ends with a table of times and a picture of the temperature. Everything is in build/model.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from examples.model import host
from examples.model.grid import parse_name, write_grid
from examples.model.model import PROGNOSTIC, Result, Settings, Way
from examples.model.picture import draw

FOLDER = Path("build/model")
PLAIN, CAPTURED, DACE, GTFN = get_args(Way.__value__)

console = Console(highlight=False)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make model ARGS=...", description="Runs icon4py's driver through gtstub.")
    parser.add_argument("grid", nargs="?", default="R02B02", help="R<n>B<k>: 20 n^2 4^k cells (default: R02B02)")
    parser.add_argument("levels", nargs="?", type=_positive, default=35, help="default: 35")
    parser.add_argument("--steps", type=_positive, default=3, help="time steps (default: 3)")
    parser.add_argument("--substeps", type=_positive, default=5, help="of each time step (default: 5)")
    parser.add_argument("--only-diffusion", action="store_true", help="leave out the dynamical core")
    parser.add_argument("--captured", action="store_true", help="run it also with captured steps, and compare")
    parser.add_argument("--export", action="store_true", help="export captured steps, and run them from Fortran")
    parser.add_argument(
        "--compare",
        nargs="?",
        const="all",
        choices=("all", "dace", "gtfn"),
        default="",
        help="run it also through gt4py's DaCe backend and GTFN, or one of them, and compare",
    )
    options = parser.parse_args(arguments)
    try:
        parse_name(options.grid)
    except ValueError as error:
        parser.error(str(error))
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    if options.export:
        if options.only_diffusion or shutil.which("gfortran") is None:
            console.print("--export needs the dynamical core and gfortran (apt-get install gfortran).")
            return 1
        options.captured, options.steps = True, host.FIRST + 1 + host.STEPS
    FOLDER.mkdir(parents=True, exist_ok=True)
    grid_file = FOLDER / f"{options.grid}.nc"
    grid = write_grid(options.grid, grid_file)
    console.print(
        f"Grid {options.grid}: {len(grid.cells):,} cells, {len(grid.edges):,} edges, {len(grid.points):,} vertices; "
        f"{options.levels} levels."
    )
    ways = [PLAIN, *([CAPTURED] if options.captured else [])]
    ways += [way for way, name in ((DACE, "dace"), (GTFN, "gtfn")) if options.compare in ("all", name)]
    shutil.rmtree(FOLDER / "output", ignore_errors=True)  # The driver does not write into what is there.
    results, problems = [], []
    for way in ways:
        console.rule(way)
        settings = Settings(
            grid=options.grid,
            grid_file=str(grid_file),
            folder=str(FOLDER),
            levels=options.levels,
            steps=options.steps,
            substeps=options.substeps,
            only_diffusion=options.only_diffusion,
            way=way,
            export=options.export and way == CAPTURED,
        )
        result = _run(settings)
        if result is None:
            problems.append(f"The run '{way}' has failed.")
            continue
        results.append(result)
        if way != PLAIN and results[0].way == PLAIN:
            problems += _differences(settings, must_be_equal=way != GTFN)
    console.rule()
    if results:
        console.print(table(results))
    for line in (line for result in results for line in result.captured):
        console.print(f"Captured: {line}", soft_wrap=True)
    if results and results[0].way == PLAIN:
        fields = np.load(FOLDER / f"{PLAIN}.npz")
        temperature = (fields["theta_v"] * fields["exner"])[:, -1]
        draw(grid_file, temperature, "Temperature of the lowest level [K]", FOLDER / "temperature.png")
        console.print(f"Picture: {FOLDER / 'temperature.png'}")
    if options.export and not problems:
        problems += host.run_host(FOLDER / "dycore", console)
    for problem in problems:
        console.print(f"[red]{problem}[/red]")
    return 1 if problems else 0


def _run(settings: Settings) -> Result | None:
    """Runs a way in a process of its own; None if it has failed, and then there are no fields."""
    (FOLDER / f"{settings.name}.npz").unlink(missing_ok=True)
    file = FOLDER / f"{settings.name}.settings.json"
    file.write_text(json.dumps(dataclasses.asdict(settings)))
    sys.stdout.flush()
    command = [sys.executable, "-O", "-m", "examples.model.model", str(file)]
    if subprocess.run(command, check=False).returncode != 0:
        return None
    return Result(**json.loads((FOLDER / f"{settings.name}.json").read_text()))


def _differences(settings: Settings, must_be_equal: bool) -> list[str]:
    """Compares the fields of a way with those of gtstub, and says so; returns what must not be."""
    expected, found = (np.load(FOLDER / f"{name}.npz") for name in (PLAIN, settings.name))
    problems = []
    for name in PROGNOSTIC:
        one, other = expected[name], found[name]
        if one.tobytes() == other.tobytes():
            continue
        difference = np.abs(one - other).max() / max(np.abs(one).max(), np.finfo(float).tiny)
        text = f"'{settings.way}': field '{name}' differs by at most {difference:.1e} of its largest value."
        problems.append(text) if must_be_equal else console.print(text)
    if not problems and must_be_equal:
        console.print(f"[green]'{settings.way}': {', '.join(PROGNOSTIC)} are equal, bit for bit.[/green]")
    return problems


def table(results: Sequence[Result]) -> Table:
    """The times and the memory of all ways, one column each."""
    rows: dict[str, list[str]] = {}

    def add(name: str, values: Sequence[Any]) -> None:
        if any(value is not None for value in values):
            rows[name] = ["" if value is None else str(value) for value in values]

    for stage in results[0].stages:
        add(f"{stage}, s", [f"{result.stages[stage]:.1f}" for result in results])
    add("first time step, ms", [f"{1e3 * result.steps[0]:.2f}" for result in results])
    later = [f"{1e3 * statistics.median(result.later):.2f}" if result.later else None for result in results]
    add("later time steps, median, ms", later)
    add(
        "not in SDFGs, % of a time step",
        [None if result.outside is None else f"{100 * result.outside:.1f}" for result in results],
    )
    add("programs built", [result.built for result in results])
    add("peak memory, MiB", [f"{result.peak / 2**20:.0f}" for result in results])
    add("peak memory of a build process, MiB", [f"{result.children / 2**20:.0f}" for result in results])
    made = Table("", *(result.way for result in results))
    for column in made.columns[1:]:
        column.justify = "right"
    for name, values in rows.items():
        made.add_row(name, *values)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
