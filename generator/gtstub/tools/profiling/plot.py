"""Plots of profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.tools.profiling.model import Profile, labels
from gtstub.tools.profiling.table import action
from gtstub.util.figure import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PROGRAMS = 30
"""The most programs with a bar of their own. The others, those with the least time, share one bar."""

MOST_POSITIONS = 100
"""The most positions of steps with a bar of their own, in the same way."""

COLOURS = {
    "conversion": "#d95f02",
    "SDFG": "#1b6ca8",
    "other": "#b3b3b3",
    "program of a step": "#5e8c61",
    "function of a step": "#8e6bb0",
}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def plot(profile: Profile, path: Path) -> None:
    """
    Draws a bar for each program (conversion, SDFG), and one for initial calls. Below, if steps have run, each of their
    positions has a bar. The time outside gtstub is only in the title: its bar would leave no room for the others.
    """
    panels = [_bars(profile), *([_bars_of_steps(profile)] if profile.steps else [])]
    rows = [len(names) for names, _ in panels]
    with drawing(path, 9, 1.3 + 0.28 * sum(rows) + 0.7 * (len(rows) - 1)) as figure:
        all_axes = figure.subplots(len(rows), squeeze=False, height_ratios=rows)[:, 0]
        for axes, (names, parts) in zip(all_axes, panels, strict=True):
            _draw(axes, names, parts, profile.wall)
        figure.suptitle(profile.summary(), x=0.01, horizontalalignment="left", fontsize=10)
        handles = [
            (handle, label)
            for axes in all_axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            if label != "other"
        ]
        figure.legend(*zip(*handles, strict=True), frameon=False, loc="outside lower left", ncols=len(handles))


def _draw(axes: Axes, names: Sequence[str], parts: Mapping[str, Sequence[float]], wall: float) -> None:
    """Draws a bar for each name, which consists of the seconds of its parts."""
    ends = [sum(widths) for widths in zip(*parts.values(), strict=True)]
    unit = next((unit for unit, size in UNITS.items() if max(ends) >= size), "µs")
    left = [0.0] * len(names)
    for what, seconds in parts.items():
        widths = [value / UNITS[unit] for value in seconds]
        axes.barh(range(len(names)), widths, left=left, height=0.7, color=COLOURS[what], label=what)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, end in enumerate(left):
        share = f"{ends[row] / wall:.1%}" if wall > 0 else ""
        axes.annotate(share, (end, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(y=0.02)
    axes.set_xlim(0, 1.1 * max(left) or 1.0)  # with room for the share of the longest bar
    axes.set_xlabel(f"time [{unit}], and its share of the profile")
    axes.spines[["top", "right"]].set_visible(False)


def _bars(profile: Profile) -> tuple[list[str], dict[str, list[float]]]:
    """The names of all bars from top to bottom, and the seconds of each part in each bar."""
    programs = [
        (label, program.run.conversion.total, program.run.sdfg.total)
        for label, program in zip(labels(profile.programs), profile.programs, strict=True)
        if program.run is not None
    ]
    drawn, others = programs[:MOST_PROGRAMS], programs[MOST_PROGRAMS:]
    if others:
        drawn.append((f"{len(others)} others", sum(row[1] for row in others), sum(row[2] for row in others)))
    rows = [*((*row, 0.0) for row in drawn), ("initial calls", 0.0, 0.0, profile.shares()["initial calls"])]
    names, conversion, sdfg, other = map(list, zip(*rows, strict=True))
    return names, {"conversion": conversion, "SDFG": sdfg, "other": other}


def _bars_of_steps(profile: Profile) -> tuple[list[str], dict[str, list[float]]]:
    """The same for the positions of steps."""
    positions = [
        (f"{step.name} {number + 1}: {action(position)}", position)
        for step in profile.steps
        for number, position in enumerate(step.positions)
    ]
    longest = sorted(range(len(positions)), key=lambda index: -positions[index][1].total)
    drawn = [positions[index] for index in sorted(longest[:MOST_POSITIONS])]
    others = [positions[index][1] for index in longest[MOST_POSITIONS:]]
    names = [name for name, _ in drawn] + ([f"{len(others)} others"] if others else [])

    def seconds(kind: str) -> list[float]:
        totals = [each.total if each.kind == kind else 0.0 for _, each in drawn]
        return totals + ([sum(each.total for each in others if each.kind == kind)] if others else [])

    return names, {"program of a step": seconds("program"), "function of a step": seconds("function")}
