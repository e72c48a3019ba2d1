"""What was measured, as tables on the terminal and in docs/performance.md."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.granule.timing import STEP, STEP_CALLS, Times
from tests.benchmarks import page

BEGIN, END = "<!-- granule -->", "<!-- /granule -->"
CALL_GOAL, CALLS_GOAL, STEP_GOAL, CAPTURED_GOAL = 1.03, 1.03, 1.1, 1.03
SHORT_CALL, SHORT_CALL_GOAL = 5, 1.2
"""Microseconds of an SDFG, and the goal for those that take less."""
SHORT_CALLS, SHORT_CALLS_GOAL = 30, 1.1
"""The same for all SDFGs of a step together."""

WHO = ("SDFG", "gtstub", "bound", "gt4py")
HEAD = ("program", "calls", "SDFG from C", "gtstub", "bound", "gt4py", "gtstub / C", "bound / C", "gt4py / C")
GOALS_HEAD = ("minimum, divided by the minimum of the SDFGs called from C", "goal", "gtstub", "", "gt4py")


@dataclasses.dataclass(frozen=True)
class Row:
    """A program, or the step: microseconds of one call by who is called, and how many there are in a step."""

    label: str
    calls: int
    least: Mapping[str, float]
    median: Mapping[str, float]

    def ratio(self, who: str) -> float:
        return self.least[who] / self.least["SDFG"]

    def cells(self) -> tuple[str, ...]:
        times = (f"{self.least[who]:.2f} ({self.median[who]:.2f})" for who in WHO)
        ratios = (f"{self.ratio(who):.2f}" for who in WHO[1:])
        return self.label, str(self.calls or ""), *times, *ratios


@dataclasses.dataclass(frozen=True)
class Measured:
    """One granule: the program calls of its step in their order, and times as `timing.Clock.measure` gives them."""

    title: str
    calls: Sequence[str]
    times: Mapping[tuple[str, int], Times]
    fields: int
    steps: int
    problems: Sequence[str]

    def programs(self) -> list[Row]:
        """In the order of their first calls."""
        numbers = {
            name: [i for i, other in enumerate(self.calls) if other == name] for name in dict.fromkeys(self.calls)
        }
        return [self._row(f"`{name}`", indices) for name, indices in numbers.items()]

    def step_calls(self) -> Row:
        return self._row("all calls of the step, one after another", [STEP_CALLS])

    def step(self) -> Row:
        return self._row("**the step**", [STEP])

    def _row(self, label: str, numbers: Sequence[int]) -> Row:
        """Several calls of one program: their mean."""
        least, median = {}, {}
        for who in WHO:
            found = [self.times[who, max(i, STEP) if who in ("SDFG", "bound") else i] for i in numbers]
            least[who] = statistics.mean(times.least for times in found) / 1e3
            median[who] = statistics.mean(times.median for times in found) / 1e3
        return Row(label, len(numbers) if numbers[0] >= 0 else 0, least, median)

    def rows(self) -> list[tuple[str, ...]]:
        return [row.cells() for row in (*self.programs(), self.step_calls(), self.step())]

    def verdict(self) -> str:
        return "; ".join(self.problems) or f"identical results for {self.fields} fields in each of {self.steps} steps"

    def own_python(self) -> str:
        own = self.times["granule", STEP]
        return (
            f"With programs that do nothing, the step takes {own.least / 1e3:.1f} µs ({own.median / 1e3:.1f}).\n"
            "This is the granule's own Python, neither gtstub's nor gt4py's."
        )


def goals(measured: Measured) -> Iterator[tuple[str, str, str, str, str]]:
    programs = measured.programs()
    for what, goal, row in (
        *(
            (f"call of {row.label}", SHORT_CALL_GOAL if row.least["SDFG"] < SHORT_CALL else CALL_GOAL, row)
            for row in programs
        ),
        (
            "all calls of the step, one after another",
            SHORT_CALLS_GOAL if measured.step().least["SDFG"] < SHORT_CALLS else CALLS_GOAL,
            measured.step_calls(),
        ),
        ("the step, with the granule's own Python", STEP_GOAL, measured.step()),
    ):
        yield _goal(f"{measured.title}: {what}", goal, row, "gtstub")
    yield _goal(f"{measured.title}: the step, captured", CAPTURED_GOAL, measured.step(), "bound")


def _goal(what: str, goal: float, row: Row, who: str) -> tuple[str, str, str, str, str]:
    ratio = row.ratio(who)
    return what, f"≤ {goal}", f"{ratio:.3f}", "met" if ratio <= goal else "**missed**", f"{row.ratio('gt4py'):.1f}"


def show(all_measured: Sequence[Measured], console: Console) -> None:
    """Minima only: a terminal is narrow."""
    for measured in all_measured:
        rows = [tuple(cell.partition(" (")[0] for cell in row) for row in measured.rows()]
        _show(f"{measured.title}: µs, minimum", HEAD, rows, console)
        console.print(f"{measured.own_python()}\n")
    _show("", GOALS_HEAD, [goal for measured in all_measured for goal in goals(measured)], console)


def _show(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], console: Console) -> None:
    table = Table(title=title)
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", no_wrap=number > 0, overflow="fold")
    for row in rows:
        table.add_row(*(cell.replace("**", "").replace("`", "") for cell in row))
    console.print(table)


def write(all_measured: Sequence[Measured], root: Path) -> None:
    """Puts the tables between the marks of the page."""
    sections = [page.markdown(GOALS_HEAD, [goal for measured in all_measured for goal in goals(measured)])]
    for measured in all_measured:
        title = f"{measured.title[0].upper()}{measured.title[1:]}: {measured.verdict()}. Times in µs, minimum (median):"
        sections += [title, page.markdown(HEAD, measured.rows()), measured.own_python()]
    machine = "\n".join(f"- {line}" for line in page.describe_machine())
    text = "\n\n".join([*sections, f"Measured on:\n\n{machine}"])
    page.replace(root / "docs" / "performance.md", text, BEGIN, END)
