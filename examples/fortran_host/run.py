"""
icon4py's diffusion driven from Fortran: as an exported granule, with no Python in the process, and through embedded
Python as icon4py does it. Are the results Python's own, to the last bit, and how long do init and run take?

    make fortran-demo                   builds what is not there yet, runs, compares, measures
    make fortran-demo ARGS=--write      also writes docs/performance.md
    make fortran-demo ARGS=--commit     also writes the committed code of the granule
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial

from rich.console import Console

from examples.fortran_host import building, prepare, report, running
from examples.fortran_host.measure import measure

FOLDER = building.ROOT / "build" / "fortran-host"
STEPS = 720
"""Two hours of model time."""

TURNS = 3
"""Runs of each host."""

console = Console(highlight=False)


def calmest(title: str, run_host: Callable[[], running.Run]) -> running.Run:
    """The run whose steps took least: whatever else the machine does only adds to them."""
    runs = [run_host() for _ in range(TURNS)]
    run = min(runs, key=lambda run: run.timers["nh_hdiff_run"].average)
    console.print(f"[bold]{title}[/bold]")
    print(run.output)
    first = runs[0].timers["nh_hdiff_init"].total
    console.print(f"The calmest of {TURNS} runs; in the first one nh_hdiff_init took {first:.3f} s")
    return run


def check(run: running.Run, expected: Mapping[str, prepare.Array]) -> bool:
    problems = list(run.problems(expected))
    for problem in problems:
        console.print(f"[red]{problem}[/red]")
    if not problems:
        fields = len(list(run.results.glob("*.bin")))
        console.print(f"[green]identical to Python's run: {fields} fields after {STEPS + 1} steps[/green]")
    python = {name for name in run.libraries if "python" in name}
    interpreter = [name for name in python if name.startswith("libpython")]
    parts = f"{', '.join(interpreter)} and {len(python) - len(interpreter)} of its modules" if python else "nothing"
    console.print(f"Of Python in the process: {parts}\n")
    return not problems


def main() -> int:
    warnings.filterwarnings("ignore", "(?s).*(Python execution|optimized mode)")
    if missing := building.missing():
        console.print(f"fortran-demo: {missing}")
        return 1

    console.print("Building the programs that are not there yet, and exporting and running the granule in Python")
    diffusion = prepare.set_up()
    prepare.write_state(diffusion, STEPS, FOLDER / "state")
    granule = prepare.export(diffusion, FOLDER / "granule")
    expected = prepare.run(diffusion, STEPS)
    if "--commit" in sys.argv[1:]:
        building.commit(granule)
    building.check_committed(granule)
    left_out = building.missing_for_embedding()
    bindings = None if left_out else building.make_bindings(FOLDER / "bindings")
    build = building.build(FOLDER, bindings)

    runs: dict[str, running.Run] = {}
    host = partial(running.run_host, build, FOLDER / "state", granule, FOLDER / "results")
    runs[report.GRANULE] = calmest(report.GRANULE, host)
    good = check(runs[report.GRANULE], expected)
    if left_out:
        console.print(f"Embedded Python is left out: {left_out}\n")
    else:
        for name, gtstub, way in (
            (report.EMBEDDED_GTSTUB, True, ""),
            (report.HANDED_OVER, True, "handed"),
            (report.EMBEDDED_GT4PY, False, ""),
        ):
            if not gtstub:
                console.print("gt4py builds what is not there yet, in the first nh_hdiff_init")
            embedded = partial(
                running.run_embedded, build, FOLDER / "state", FOLDER / f"results-embedded{way}", gtstub, way
            )
            runs[name] = calmest(name, embedded)
            good &= check(runs[name], expected)

    measured = measure(build, FOLDER / "state", granule, FOLDER)
    report.show(measured, runs, console)
    if good and "--write" in sys.argv[1:]:
        report.write(measured, runs, STEPS, building.ROOT)
        console.print("Written to docs/performance.md.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
