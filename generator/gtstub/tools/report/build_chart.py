"""
The chart of a build: which process did what when. It has a line for each process, and a bar for each stage.

A cache keeps entries of many builds, so the chart is that of the latest: the builds before it are those that ended more
than `APART` before the next one began.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from gtstub.entries.cache.entry import Entry, entries_in
from gtstub.entries.cache.manifest import BuildStage
from gtstub.errors import CacheError

APART = 600.0
"""Seconds between two builds, in which no entry was built."""

WIDTH, LINE, BAR = 970, 24, 16
"""Pixels: the lines without their labels, the height of a line, and that of a bar."""

LABEL, AXIS = 160, 24
"""Pixels: the width of the labels, and the height of the axis."""

MOST = 100
"""The most processes that are drawn. A chart of more would be taller than anybody scrolls."""

COLORS = 8
"""The colours in templates/report/style.css. Further stages take the last one."""

LONGEST = 24
"""The most characters of a label."""

STUB = "stub"
"""The stage that runs beside others of its process."""


@dataclasses.dataclass(frozen=True)
class Build:
    """The build of an entry: its program, its host, and its stages."""

    program: str
    host: str
    stages: tuple[BuildStage, ...]

    @property
    def begin(self) -> float:
        return min(stage.begin for stage in self.stages)

    @property
    def end(self) -> float:
        return max(stage.begin + stage.seconds for stage in self.stages)


@dataclasses.dataclass(frozen=True)
class Bar:
    """A stage, in pixels. `color` counts from 0; `title` names its program, stage, process and times."""

    x: float
    y: int
    width: float
    height: int
    color: int
    title: str


@dataclasses.dataclass(frozen=True)
class Process:
    """A line of the chart and of the table: its label, the number of programs, its seconds in all and by stage."""

    host: str
    pid: int
    label: str
    y: int
    programs: int
    busy: str
    seconds: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Tick:
    x: float
    label: str


@dataclasses.dataclass(frozen=True)
class BuildChart:
    """
    Sizes in pixels. `stages` are the names of the colours in order. `programs` were built since `begin`, a date and
    time in UTC, in `seconds`; `older` counts the entries of earlier builds, `unknown` those that keep no stages. The
    chart is not to be drawn if it is not `drawn`.
    """

    width: int
    height: int
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    processes: tuple[Process, ...]
    stages: tuple[str, ...]
    programs: int
    begin: str
    seconds: str
    older: int
    unknown: int
    drawn: bool


def builds_of(cache: Path) -> list[Build]:
    """The builds of a cache's whole entries. Raises OSError if the directory cannot be read."""
    builds = []
    for path in entries_in(cache):
        with suppress(CacheError):  # The page lists these entries without a report.
            manifest = Entry(path).manifest()
            builds.append(Build(manifest.name, manifest.built.host, manifest.built.stages))
    return builds


def build_chart(builds: Iterable[Build]) -> BuildChart | None:
    """The chart of the latest of these builds. None if none of them has stages."""
    every = list(builds)
    known = sorted((build for build in every if build.stages), key=lambda build: build.begin)
    if not known:
        return None
    latest = _latest(known)
    begin, end = latest[0].begin, max(build.end for build in latest)
    names = tuple(dict.fromkeys(stage.name for build in latest for stage in build.stages))
    lines = _lines(latest)
    places = {process: number for number, process in enumerate(lines)}
    scale = WIDTH / max(end - begin, 0.001)
    bars = [
        Bar(
            x=round(LABEL + (stage.begin - begin) * scale, 1),
            y=places[build.host, stage.pid] * LINE + (LINE - BAR) // 2 + (BAR * 2 // 3 if stage.name == STUB else 0),
            width=round(max(1.0, stage.seconds * scale), 1),
            height=BAR // 3 if stage.name == STUB else BAR,
            color=min(names.index(stage.name), COLORS - 1),
            title=f"{build.program}: {stage.name}, {stage.seconds:.2f} s from {stage.begin - begin:.2f} s on, by"
            f" process {stage.pid} on '{build.host}'",
        )
        for build in latest
        for stage in sorted(build.stages, key=lambda stage: stage.name == STUB)  # above the bar that it runs beside
    ]
    return BuildChart(
        width=LABEL + WIDTH + AXIS,
        height=len(lines) * LINE + AXIS,
        bars=tuple(bars),
        ticks=tuple(Tick(round(LABEL + time * scale, 1), label) for time, label in _ticks(end - begin)),
        processes=tuple(_process(*process, own, names, places[process]) for process, own in lines.items()),
        stages=names,
        programs=len(latest),
        begin=f"{datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M:%S}",
        seconds=f"{end - begin:.1f}",
        older=len(known) - len(latest),
        unknown=len(every) - len(known),
        drawn=len(lines) <= MOST,
    )


def _latest(builds: Sequence[Build]) -> list[Build]:
    """Those of builds, sorted by their begins, that follow the last long time in which there was none."""
    first, end = 0, -math.inf
    for number, build in enumerate(builds):
        if build.begin - end > APART:
            first = number
        end = max(end, build.end)
    return list(builds[first:])


type Own = Sequence[tuple[Build, BuildStage]]
"""The stages that one process ran, with their builds."""


def _lines(builds: Sequence[Build]) -> dict[tuple[str, int], Own]:
    """The hosts and numbers of the processes, in the order in which they began, with their stages."""
    found: dict[tuple[str, int], list[tuple[Build, BuildStage]]] = {}
    for build in builds:
        for stage in build.stages:
            found.setdefault((build.host, stage.pid), []).append((build, stage))
    begins = {process: min(stage.begin for _, stage in own) for process, own in found.items()}
    return {process: found[process] for process in sorted(found, key=lambda process: (begins[process], process))}


def _process(host: str, pid: int, own: Own, names: Sequence[str], line: int) -> Process:
    seconds = [sum(stage.seconds for _, stage in own if stage.name == name) for name in names]
    busy = sum(stage.seconds for _, stage in own if stage.name != STUB)
    label = f"{host} {pid}"
    return Process(
        host=host,
        pid=pid,
        label=label if len(label) <= LONGEST else f"…{label[1 - LONGEST :]}",
        y=line * LINE + LINE // 2,
        programs=len({id(build) for build, _ in own}),
        busy=f"{busy:.2f}",
        seconds=tuple(f"{each:.2f}" if each else "" for each in seconds),
    )


def _ticks(seconds: float) -> Iterator[tuple[float, str]]:
    """At most eleven round times, from 0 on."""
    power = 10.0 ** math.floor(math.log10(max(seconds, 0.001) / 10))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 10 >= seconds)
    for number in range(int(seconds / step) + 1):
        yield number * step, f"{number * step:g} s"
