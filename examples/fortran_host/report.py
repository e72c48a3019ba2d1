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
STEP_GOAL, OPEN_GOAL = 1.02, 1000.0

STUBS = "Fortran over stubs, no Python in the process"
STEP = "The same, the calls of nh_hdiff_run bound once and run as one step"
EMBEDDED_GTSTUB = "Fortran through embedded Python (icon4py's py2fgen), programs through gtstub"
HANDED_OVER = "The same, but Python hands a step over, and nh_hdiff_run does not enter it"
EMBEDDED_GT4PY = "Fortran through embedded Python (icon4py's py2fgen), programs through gt4py's DaCe backend"

STEP_HEAD = ("one step", "µs, minimum", "median or mean", "divided by C")
GOALS_HEAD = ("figure", "goal", "measured", "")
TIMERS_HEAD = ("name", "# calls", "t_min", "t_avg", "t_max", "total")


def step_rows(measured: Measured, runs: Mapping[str, Run]) -> Iterator[tuple[str, ...]]:
    """The first five take turns in one process; an embedded one has a process of its own, and a mean, not a median."""
    floor = measured.loop.least
    for label, times in (
        ("the SDFGs called from C by hand", measured.loop),
        (f"**{STUBS}**", measured.fortran),
        (f"**{STEP}**", measured.bound),
        ("calls from Fortran of SDFGs that do nothing", measured.nothing),
        ("the same, bound and run as one step", measured.bound_nothing),
    ):
        yield label, f"{times.least / 1e3:.2f}", f"{times.median / 1e3:.2f}", f"{times.least / floor:.3f}"
    for name in (EMBEDDED_GTSTUB, HANDED_OVER, EMBEDDED_GT4PY):
        if name in runs:
            timer = runs[name].timers["nh_hdiff_run"]
            yield name, f"{timer.least:.2f}", f"{timer.average:.2f}", f"{timer.least / floor * 1e3:.1f}"


def goals(measured: Measured, runs: Mapping[str, Run]) -> Iterator[tuple[str, ...]]:
    ratio = measured.fortran.least / measured.loop.least
    yield (
        "a step of the Fortran granule, divided by the step from C",
        f"≤ {STEP_GOAL}",
        f"{ratio:.3f}",
        _met(ratio, STEP_GOAL),
    )
    opening = runs[STUBS].timers["gts_open"]
    text = f"{opening.average:.0f} µs, mean of {opening.calls} (at most {opening.most:.0f})"
    yield "`gts_open` of a compiled program", "≤ 1 ms", text, _met(opening.average, OPEN_GOAL)


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
