"""How a page arranges leaves and slots: in two columns with lines between them, or in a row for each leaf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gtstub.report.model import ProgramReport, Slot

FOLDED = 60
"""Lines to more slots than these would be a wall: then symbols are folded under their leaf."""

METRICS = -1
"""The place of the row for gt4py's metrics, which no argument fills."""


@dataclasses.dataclass(frozen=True)
class Line:
    """From the middle of a row on the left to that of a slot; heights in rows of slots."""

    leaf: int
    left: float
    right: float
    is_symbol: bool


@dataclasses.dataclass(frozen=True)
class Row:
    """A leaf, or the metrics. `main` are the slots of its data or value, `symbols` those of its sizes and the like."""

    place: int
    title: str
    contract: str
    main: tuple[Slot, ...]
    symbols: tuple[Slot, ...]


@dataclasses.dataclass(frozen=True)
class Flow:
    """`height` is the number of rows of the longer column. There are lines unless the slots are `folded`."""

    rows: tuple[Row, ...]
    lines: tuple[Line, ...]
    height: int
    folded: bool


def flow(report: ProgramReport) -> Flow:
    rows = [_row(leaf.index, leaf.path, leaf.contract, report.slots) for leaf in report.leaves]
    if any(slot.leaf is None for slot in report.slots):
        rows.append(_row(METRICS, "gt4py's metrics", "no argument: gtstub fills them", report.slots))
    height = max(len(rows), len(report.slots))
    folded = len(report.slots) > FOLDED
    lines = () if folded else tuple(_lines(rows, report.slots, height))
    return Flow(tuple(rows), lines, height, folded)


def _row(place: int, title: str, contract: str, slots: Sequence[Slot]) -> Row:
    own = [slot for slot in slots if (METRICS if slot.leaf is None else slot.leaf) == place]
    main = tuple(slot for slot in own if slot.kind != "axis")
    return Row(place, title, contract, main, tuple(slot for slot in own if slot.kind == "axis"))


def _lines(rows: Sequence[Row], slots: Sequence[Slot], height: int) -> list[Line]:
    left = {row.place: (number + 0.5) * height / len(rows) for number, row in enumerate(rows)}
    step = height / len(slots) if slots else 0.0
    return [
        Line(place, left[place], (number + 0.5) * step, slot.kind == "axis")
        for number, slot in enumerate(slots)
        for place in [METRICS if slot.leaf is None else slot.leaf]
    ]
