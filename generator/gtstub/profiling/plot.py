"""Plots of profiles."""

from __future__ import annotations

from pathlib import Path

from gtstub.profiling.model import Profile, labels
from gtstub.util.figure import drawing

MOST_PROGRAMS = 30
"""The most programs with a bar of their own. The others, those with the least time, share one bar."""

COLOURS = {"conversion": "#d95f02", "SDFG": "#1b6ca8", "other": "#b3b3b3"}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def plot(profile: Profile, path: Path) -> None:
    """Draws a bar for each program (conversion, SDFG), one for initial calls, and one for the time outside gtstub."""
    names, parts = _bars(profile)
    ends = [sum(widths) for widths in zip(*parts.values(), strict=True)]
    unit = next((unit for unit, size in UNITS.items() if max(ends) >= size), "µs")
    with drawing(path, 9, 1.3 + 0.28 * len(names)) as figure:
        axes = figure.subplots()
        left = [0.0] * len(names)
        for what, seconds in parts.items():
            widths = [value / UNITS[unit] for value in seconds]
            axes.barh(range(len(names)), widths, left=left, height=0.7, color=COLOURS[what], label=what)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        for row, end in enumerate(left):
            share = f"{ends[row] / profile.wall:.1%}" if profile.wall > 0 else ""
            axes.annotate(share, (end, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.margins(x=0.1, y=0.02)
        axes.set_xlabel(f"time [{unit}], and its share of the profile")
        figure.suptitle(profile.summary(), x=0.01, horizontalalignment="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        handles = axes.get_legend_handles_labels()
        figure.legend(handles[0][:2], handles[1][:2], frameon=False, loc="outside lower left", ncols=2)


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
    shares = profile.shares()
    rows = [(*row, 0.0) for row in drawn]
    rows += [(name, 0.0, 0.0, shares[name]) for name in ("initial calls", "outside gtstub")]
    names, conversion, sdfg, other = map(list, zip(*rows, strict=True))
    return names, {"conversion": conversion, "SDFG": sdfg, "other": other}
