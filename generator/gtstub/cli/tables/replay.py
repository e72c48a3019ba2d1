"""Replays as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gtstub.util.console import make_table, print_parts


def print_replay(report: Mapping[str, Any], compare: bool) -> None:
    """What differs, a row for each argument with its worst call, and how much was replayed."""
    from rich.text import Text

    differing = [one for one in report["comparisons"] if one["differ"] > 0]
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in differing:
        rows.setdefault((one["program"], one["argument"]), []).append(one)
    table = make_table(
        "program", "argument", "calls", "process", "call", "elements", "index", "expected", "found", "ulp", "absolute",
        "relative",
    )  # fmt: skip
    for (program, argument), found in rows.items():
        worst = max(found, key=_badness)
        where = worst["worst"]
        table.add_row(
            program,
            argument,
            str(len(found)),
            worst["process"],
            str(worst["call"]),
            f"{worst['differ']} of {worst['elements']}",
            ", ".join(f"{dim} {index}" for dim, index in zip(worst["dims"], where["index"], strict=True)),
            *(_text(where[name]) for name in ("expected", "found", "ulp", "absolute", "relative")),
        )
    print_parts(table if compare and rows else "", Text("\n".join(_summary(report, compare))))


def _badness(comparison: Mapping[str, Any]) -> float:
    ulp = comparison["worst"]["ulp"]
    return float("inf") if ulp is None else float(ulp)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _summary(report: Mapping[str, Any], compare: bool) -> list[str]:
    comparisons = report["comparisons"]
    calls = report["calls"]
    lines = [f"{calls} call{'' if calls == 1 else 's'} made again."]
    if compare:
        beyond = sum(one["beyond"] > 0 for one in comparisons)
        within = sum(one["differ"] > 0 and one["beyond"] == 0 for one in comparisons)
        lines[0] += f" Of {len(comparisons)} results, {beyond} differ by more than is tolerated, {within} by less."
    if report["left_out"] and not compare:
        lines.append(f"{not_made(report['left_out'])}.")
    return lines


def not_made(left_out: Mapping[str, int]) -> str:
    counts = ", ".join(f"{count} of '{name}'" for name, count in left_out.items())
    return f"Not made: {counts}, for which no program was given"
