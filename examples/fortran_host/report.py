"""What was measured, as tables on the terminal and in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.fortran_host.measure import Measured
from examples.fortran_host.running import Run
from tests.benchmarks import page

BEGIN, END = "<!-- fortran -->", "<!-- /fortran -->"
STEP_GOAL, OPEN_GOAL = 1.01, 5000.0

GRANULE = "Fortran over the exported granule, no Python in the process"
EMBEDDED_GTSTUB = "Fortran through embedded Python (icon4py's py2fgen), programs through gtstub"
HANDED_OVER = "The same, but Python hands a step over, and nh_hdiff_run does not enter it"
EMBEDDED_GT4PY = "Fortran through embedded Python (icon4py's py2fgen), programs through gt4py's DaCe backend"

STEP_HEAD = ("one step", "µs, minimum", "median or mean", "divided by C")
GOALS_HEAD = ("figure", "goal", "measured", "")
TIMERS_HEAD = ("name", "# calls", "t_min", "t_avg", "t_max", "total")


def step_rows(measured: Measured, runs: Mapping[str, Run]) -> Iterator[tuple[str, ...]]:
    """The first three take turns in one process; an embedded one has a process of its own, and a mean, not a median."""
    floor = measured.loop.least
    for label, times in (
        ("the SDFGs called from C by hand", measured.loop),
        (f"**{GRANULE}**", measured.granule),
        ("the granule over SDFGs that do nothing", measured.nothing),
    ):
        yield label, f"{times.least / 1e3:.2f}", f"{times.median / 1e3:.2f}", f"{times.least / floor:.3f}"
    for name in (EMBEDDED_GTSTUB, HANDED_OVER, EMBEDDED_GT4PY):
        if name in runs:
            timer = runs[name].timers["nh_hdiff_run"]
            yield name, f"{timer.least:.2f}", f"{timer.average:.2f}", f"{timer.least / floor * 1e3:.1f}"


def goals(measured: Measured, runs: Mapping[str, Run]) -> Iterator[tuple[str, ...]]:
    ratio = measured.granule.least / measured.loop.least
    yield (
        "a step of the granule, divided by the step from C",
        f"≤ {STEP_GOAL}",
        f"{ratio:.3f}",
        _met(ratio, STEP_GOAL),
    )
    opening = runs[GRANULE].timers["nh_hdiff_init"].total * 1e6
    yield "opening the granule", "≤ 5 ms", f"{opening / 1e3:.2f} ms", _met(opening, OPEN_GOAL)
    binding = runs[GRANULE].timers["nh_hdiff_bind"].total * 1e6
    yield "binding its eight arrays", "", f"{binding:.0f} µs", ""


def _met(value: float, goal: float) -> str:
    return "met" if value <= goal else "**missed**"


def timer_rows(run: Run) -> Iterator[tuple[str, ...]]:
    """Microseconds, as the hosts print them; the total in seconds."""
    for name, timer in run.timers.items():
        times = (f"{value:,.2f}" for value in (timer.least, timer.average, timer.most))
        yield f"`{name}`", str(timer.calls), *times, f"{timer.total:.6f}"


def show(measured: Measured, runs: Mapping[str, Run], console: Console) -> None:
    for head, rows in ((STEP_HEAD, step_rows(measured, runs)), (GOALS_HEAD, goals(measured, runs))):
        table = Table()
        for number, name in enumerate(head):
            table.add_column(name, justify="right" if number else "left")
        for row in rows:
            table.add_row(*(cell.replace("**", "").replace("`", "") for cell in row))
        console.print(table)


def write(measured: Measured, runs: Mapping[str, Run], steps: int, root: Path) -> None:
    """Puts the tables between the marks of the page."""
    sections = [
        page.markdown(GOALS_HEAD, list(goals(measured, runs))),
        page.markdown(STEP_HEAD, list(step_rows(measured, runs))),
    ]
    for name, run in runs.items():
        title = f"{name}:\n{steps + 1} steps, results identical to those from Python. Times in µs, totals in s:"
        sections += [title, page.markdown(TIMERS_HEAD, list(timer_rows(run)))]
    machine = "\n".join(f"- {line}" for line in page.describe_machine())
    page.replace(root / "docs" / "performance.md", "\n\n".join([*sections, f"Measured on:\n\n{machine}"]), BEGIN, END)
