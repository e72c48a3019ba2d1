"""What was measured, as tables on the terminal and in the pages."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"

PACKAGES = ("gtstub", "gt4py", "dace", "icon4py-atmosphere-diffusion", "numpy", "nanobind", "apache-tvm-ffi")

ROWS = {
    "empty": "empty vectorcall, same arguments",
    "bare C": "the SDFG itself, from a C loop",
    "gtstub same": "**gtstub**, same fields",
    "gtstub one more thread": "gtstub, same fields, while another Python thread exists",
    "gtstub two levels": "gtstub, two alternating sets of fields (time levels)",
    "gtstub numpy scalars": "gtstub, same fields, numpy scalars",
    "gtstub new": "**gtstub**, every field a new object",
    "gtstub new, own domains": "gtstub, every field a new object with its own domain",
    "bound": "**`gtstub.compile()`**, 17 arguments bound, 3 fields passed by keyword",
    "keywords": "`gtstub.compile()`, all 20 arguments by keyword",
    "keywords and provider": "the same with the offset provider",
    "one variant": "`gtstub.compile()`, 3 fields and 3 static arguments passed, one variant",
    "eight variants": "the same, eight variants",
    "gt4py bound": "gt4py's program as icon4py calls it (`functools.partial`), DaCe backend, 3 fields passed",
    "gtstub from C": "gtstub, from C through `<name>_call`",
    "gtstub from C, in turn": "the same, two alternating sets of arrays (time levels)",
    "bound from Python": "gtstub, a bound call, from Python",
    "step from Python": "gtstub, a program in a step of ten, from Python",
    "bound from C": "gtstub, a bound call, from C",
    "step from C": "gtstub, a program in a step of ten, from C",
    "bound from Fortran": "gtstub, a bound call, from Fortran",
    "step from Fortran": "gtstub, a program in a step of ten, from Fortran",
    "gtstub from Fortran": "gtstub, from Fortran, whole arrays",
    "gtstub from Fortran, sections": "gtstub, from Fortran, sections of larger arrays",
    "gtstub from Fortran, in turn": "gtstub, from Fortran, alternating whole arrays and sections",
    "dace same": "gt4py's DaCe backend, same fields",
    "dace update": "of which: update of the arguments",
    "dace fast_call": "of which: `fast_call`",
    "dace new": "gt4py's DaCe backend, every field a new object",
    "gtfn same": "gt4py's GTFN backend, same fields, its kernel included",
    "nanobind": "nanobind, numpy arrays",
    "tvm-ffi numpy": "tvm-ffi, numpy arrays",
    "tvm-ffi tensors": "tvm-ffi, its own tensors",
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """What measure.py prints: nanoseconds per call in each round, milliseconds of loads, reasons."""

    calls: dict[str, list[float]]
    loads: dict[str, float]
    skipped: dict[str, str]

    def least(self, name: str) -> float:
        return min(self.calls[name])

    def median(self, name: str) -> float:
        return statistics.median(self.calls[name])


@dataclasses.dataclass(frozen=True)
class Figures:
    optimised: Measured
    plain: Measured
    slots: int
    parameters: int
    instructions: dict[str, float]
    """By the way of calling; empty where there is no valgrind."""
    lines: dict[str, int]
    """Cache lines of data, in the same way."""
    imports: list[float]
    """Milliseconds of importing gtstub, each in a new interpreter."""
    loads: list[float]
    """Milliseconds of loading a cache entry, each in a new interpreter."""
    opens: list[float]
    """Milliseconds of gts_open() in a host in C, each in a new process."""
    stubs: list[float]
    """Seconds of generating and compiling a stub."""
    stub_bytes: int


@dataclasses.dataclass(frozen=True)
class Goal:
    """`measured` is what the goal is judged by; None where it could not be measured."""

    what: str
    limit: float
    measured: float | None
    unit: str
    remark: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        return "met" if self.measured <= self.limit else "**missed**"

    def cells(self) -> tuple[str, str, str, str]:
        measured = self.remark if self.measured is None else f"{number(self.measured)} {self.unit}{self.remark}"
        return self.what, f"≤ {number(self.limit)} {self.unit}", measured, self.verdict


def number(value: float) -> str:
    """Three digits, rounded up: a miss stays a miss."""
    if value >= 100 or value == int(value):
        return f"{-(-value // 1):,.0f}"
    digits = 1 if value >= 10 else 2 if value >= 1 else 3
    scale = 10**digits
    return f"{-(-value * scale // 1) / scale:.{digits}f}"


def goals(figures: Figures) -> Iterator[Goal]:
    measured = figures.optimised
    for name, limit, what in (
        ("gtstub same", 250.0, "same fields, minus the empty vectorcall"),
        ("gtstub new", 2000.0, "every field a new object, whole call (desired: 1,000 ns)"),
        ("gtstub new, own domains", 2000.0, "the same, every field with its own domain"),
    ):
        floor = ("empty",) if name == "gtstub same" else ()
        least = measured.least(name) - sum(map(measured.least, floor))
        median = measured.median(name) - sum(map(measured.median, floor))
        yield Goal(what, limit, least, "ns", _and_median(median))
    for name, floor, limit, what in (
        ("bound", "bound empty", 250.0, "`gtstub.compile()`, 3 unbound fields by keyword, minus the empty vectorcall"),
        (
            "keywords",
            "keywords empty",
            500.0,
            "`gtstub.compile()`, all 20 arguments by keyword, minus the empty vectorcall",
        ),
        ("keywords and provider", "keywords and provider empty", 500.0, "the same with the offset provider"),
        ("eight variants", "one variant", 50.0, "eight variants of three static arguments, minus one variant"),
        ("gtstub from C", "bare C", 20.0, "from C, known arrays, minus the SDFG itself called with constants"),
    ):
        least = max(0.0, measured.least(name) - measured.least(floor))
        yield Goal(what, limit, least, "ns", _and_median(measured.median(name) - measured.median(floor)))
    for name, limit, what in (
        ("gtstub from Fortran", 60.0, "from Fortran, known whole arrays, minus the SDFG itself called from C"),
        ("gtstub from Fortran, sections", 100.0, "the same, sections of larger arrays"),
        ("bound from C", 10.0, "a bound call from C, minus the SDFG itself called from C"),
        ("step from C", 10.0, "a program in a step from C, the same"),
        ("bound from Fortran", 12.0, "a bound call from Fortran, the same"),
        ("step from Fortran", 10.0, "a program in a step from Fortran, the same"),
    ):
        if name not in measured.calls:
            yield Goal(what, limit, None, "ns", "gfortran is not installed")
            continue
        least, median = (value(name) - value("bare C") for value in (measured.least, measured.median))
        counted = f", {figures.instructions[name]:.0f} instructions" if name in figures.instructions else ""
        yield Goal(what, limit, least, "ns", _and_median(median) + counted)
    for way, limit, what in (
        ("program", 1000, "instructions of a call, minus those of the empty vectorcall"),
        ("bound", 1150, "the same, `gtstub.compile()`, 3 unbound fields by keyword"),
        ("keywords", 1400, "the same, `gtstub.compile()`, all 20 arguments by keyword"),
        ("C", 300, "instructions of a call from C, minus those of the SDFG itself called with constants"),
    ):
        missing = "" if way in figures.instructions else "valgrind is not installed"
        yield Goal(what, limit, figures.instructions.get(way), "", missing)
    for way, limit_of_lines, what in (
        ("program", 20, "cache lines of data of a call, beside the stack and what the caller passes"),
        ("bound", 30, "the same, `gtstub.compile()`, 3 unbound fields by keyword"),
        ("C", 47, "the same, from C"),
    ):
        missing = "" if way in figures.lines else "valgrind is not installed"
        yield Goal(what, limit_of_lines, figures.lines.get(way), "", missing)
    for what, limit, times, unit in (
        ("load of a cached program, without gt4py and DaCe", 5.0, figures.loads, "ms"),
        ("the same from C: `gts_open()`", 1.0, figures.opens, "ms"),
        ("generating and compiling one stub", 0.3, figures.stubs, "s"),
    ):
        yield Goal(what, limit, min(times), unit, _and_median(statistics.median(times)))
    yield Goal("size of the stub library", 64, figures.stub_bytes / 1024, "KiB")


def _and_median(median: float) -> str:
    return f" (median {number(median)})"


def call_rows(figures: Figures) -> Iterator[tuple[str, ...]]:
    """Name, then minimum and median under `python -O`, then under `python`."""
    for name, label in ROWS.items():
        if name in figures.optimised.calls:
            cells = [
                number(value(name)) for run in (figures.optimised, figures.plain) for value in (run.least, run.median)
            ]
            yield label, *cells
        elif name in figures.optimised.skipped:
            yield label, f"not measured: {figures.optimised.skipped[name]}", "", "", ""


def load_rows(figures: Figures) -> Iterator[tuple[str, str]]:
    yield "gtstub: load of the cache entry", f"{number(min(figures.loads))} ms"
    yield "gtstub: import, once per process", f"{number(min(figures.imports))} ms"
    for name, label in (
        ("gt4py dace", "gt4py's DaCe backend"),
        ("gt4py gtfn", "gt4py's GTFN backend"),
    ):
        if name in figures.optimised.loads:
            yield label, f"{number(figures.optimised.loads[name])} ms"


GOALS_HEAD = ("figure", "goal", "measured", "")
CALLS_HEAD = ("call", "`python -O` min", "median", "`python` min", "median")
LOADS_HEAD = ("load", "time")


def show(figures: Figures, console: Console) -> None:
    for head, rows in (
        (CALLS_HEAD, list(call_rows(figures))),
        (LOADS_HEAD, list(load_rows(figures))),
        (GOALS_HEAD, [goal.cells() for goal in goals(figures)]),
    ):
        table = Table(*(_plain(cell) for cell in head))
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*(_plain(cell) for cell in row))
        console.print(table)


def _plain(cell: str) -> str:
    return cell.replace("**", "").replace("`", "")


def write(figures: Figures, root: Path) -> None:
    """Puts the tables between the marks of the two pages."""
    goals_table = markdown(GOALS_HEAD, [goal.cells() for goal in goals(figures)])
    machine = "\n".join(f"- {line}" for line in describe_machine())
    sections = [
        f"One call of {figures.parameters} arguments and {figures.slots} slots. The minimum decides whether a goal is"
        " met.",
        goals_table,
        f"Nanoseconds per call:\n\n{markdown(CALLS_HEAD, list(call_rows(figures)))}",
        markdown(LOADS_HEAD, list(load_rows(figures))),
        f"Measured on:\n\n{machine}",
    ]
    replace(root / "docs" / "performance.md", "\n\n".join(sections))
    replace(root / "README.md", _summary(figures))


SUMMARY = (
    "gtstub same",
    "gtstub new",
    "bound",
    "gtstub from C",
    "gtstub from Fortran",
    "dace same",
    "gt4py bound",
    "gtfn same",
    "nanobind",
    "tvm-ffi numpy",
)


def _summary(figures: Figures) -> str:
    run = figures.optimised
    names = [name for name in SUMMARY if name in run.calls]
    rows = [(ROWS[name].replace("**", ""), f"{number(run.least(name) / 1e3)} µs") for name in names]
    return (
        f"One call of icon4py's `apply_diffusion_to_vn` ({figures.parameters} arguments, {figures.slots} slots)"
        f" on a library that does nothing, under `python -O`:\n\n{markdown(('call', 'minimum'), rows)}"
    )


def markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    ruler = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows))


def replace(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replaces what stands between the marks of a page."""
    page = path.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"Page '{path.name}' has no '{begin}' and '{end}'.")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


# --- The machine ------------------------------------------------------------------------------------------------------


def describe_machine() -> list[str]:
    """What kind of machine this is, without its name or its paths."""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    load = os.getloadavg()[0]
    return [
        f"{_cpu()}, {os.cpu_count()} cores; load average at the end {load:.1f}",
        f"{system}, {platform.machine()}",
        f"{_compiler()}, CPython {platform.python_version()}",
        ", ".join(f"{package} {_version(package)}" for package in PACKAGES),
    ]


def _cpu() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else platform.processor() or "unknown CPU"


def _compiler() -> str:
    lines = subprocess.run(["cc", "--version"], check=False, capture_output=True, text=True).stdout.splitlines()
    return lines[0] if lines else "unknown compiler"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(none)"
