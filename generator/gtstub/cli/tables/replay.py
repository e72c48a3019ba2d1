"""Tables of replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gtstub.util.console import make_table, print_parts


def print_replay(report: Mapping[str, Any], compare: bool) -> None:
    """Prints a row for each argument that differs, with its worst call, and the numbers of calls and results."""
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in report["comparisons"]:
        if compare and one["differ"] > 0:
            rows.setdefault((one["program"], one["argument"]), []).append(one)
    numbers = ("expected", "found", "ulp", "absolute", "relative")
    table = make_table("program", "argument", "differing calls", "process", "worst call", "elements", "index", *numbers)
    for (program, argument), found in rows.items():
        worst = max(found, key=_badness)
        place = worst["worst"]
        table.add_row(
            program,
            argument,
            str(len(found)),
            worst["process"],
            str(worst["call"]),
            f"{worst['differ']} of {worst['elements']}",
            ", ".join(f"{dim} {index}" for dim, index in zip(worst["dims"], place["index"], strict=True)),
            *(_text(value) for value in map(place.get, numbers)),
        )
    print_parts(table, _summary(report, compare))


def _text(value: Any) -> str:
    """A number of the report, of which a complex one is a list of its parts."""
    return "" if value is None else str(complex(*map(float, value)) if isinstance(value, list) else value)


def _badness(comparison: Mapping[str, Any]) -> float:
    ulp = comparison["worst"]["ulp"]
    return float("inf") if ulp is None else float(ulp)


def _summary(report: Mapping[str, Any], compare: bool) -> str:
    calls, comparisons, left_out = report["calls"], report["comparisons"], report["left_out"]
    text = f"{calls} call{'' if calls == 1 else 's'} replayed."
    if compare:
        beyond = sum(one["beyond"] > 0 for one in comparisons)
        within = sum(one["differ"] > 0 and one["beyond"] == 0 for one in comparisons)
        return f"{text} Of {len(comparisons)} results, {beyond} differ by more than the tolerance, {within} by less."
    return f"{text}\n{not_replayed(left_out)}." if left_out else text


def not_replayed(left_out: Mapping[str, int]) -> str:
    counts = ", ".join(f"{count} of '{name}'" for name, count in left_out.items())
    return f"Not replayed: {counts}, for which no program was given"
