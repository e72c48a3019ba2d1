"""
How a page arranges leaves and slots: in two columns with lines between them, or in a row for each leaf. In the columns,
the sizes, starts and strides of one array that follow each other share a row.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence

from gtstub.tools.report.model import ProgramReport, Slot

FOLDED = 60
"""Lines to more rows of slots than these would be a wall: then symbols are folded under their leaf."""

METRICS = -1
"""The place of the row for gt4py's metrics, which no argument fills."""


@dataclasses.dataclass(frozen=True)
class Group:
    """The slots of a row: one of data or of a value, or the sizes, starts and strides of an array; and their source."""

    place: int
    slots: tuple[Slot, ...]
    text: str

    @property
    def numbers(self) -> str:
        first, last = self.slots[0].index, self.slots[-1].index
        return str(first) if first == last else f"{first}–{last}"


@dataclasses.dataclass(frozen=True)
class Line:
    """From the middle of a row on the left to that of a group of slots; heights in rows of slots."""

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
    groups: tuple[Group, ...]
    lines: tuple[Line, ...]
    height: int
    folded: bool


def flow(report: ProgramReport) -> Flow:
    rows = [_row(leaf.index, leaf.path, leaf.contract, report.slots) for leaf in report.leaves]
    if any(slot.leaf is None for slot in report.slots):
        rows.append(_row(METRICS, "gt4py's metrics", "no argument: gtstub fills them", report.slots))
    titles = {row.place: row.title for row in rows}
    groups = [
        Group(place, tuple(slots), _text(titles[place], slots))
        for (place, _), found in itertools.groupby(report.slots, lambda slot: (_place(slot), _alone(slot)))
        for slots in [tuple(found)]
    ]
    height = max(len(rows), len(groups))
    folded = len(groups) > FOLDED
    lines = () if folded else tuple(_lines(rows, groups, height))
    return Flow(tuple(rows), tuple(groups), lines, height, folded)


def _place(slot: Slot) -> int:
    return METRICS if slot.leaf is None else slot.leaf


def _alone(slot: Slot) -> int:
    """Equal for slots that may share a row."""
    return -1 if slot.kind == "axis" else slot.index


def _text(title: str, slots: Sequence[Slot]) -> str:
    """`stop of axis 0, start and stride of axes 1, 2 of 'vn'`; other sources of several slots as they are."""
    if len(slots) == 1:
        return slots[0].source
    of = f" of '{title}'"
    found = [re.fullmatch(rf"(\w+) of axis (\d+){re.escape(of)}", slot.source) for slot in slots]
    by_axis: dict[int, list[str]] = {}
    for each in found:
        if each is None:
            return ", ".join(slot.source for slot in slots)
        by_axis.setdefault(int(each[2]), []).append(each[1])
    alike: dict[str, list[int]] = {}
    for axis, what in sorted(by_axis.items()):
        text = f"{', '.join(what[:-1])} and {what[-1]}" if what[1:] else what[0]
        alike.setdefault(text, []).append(axis)
    parts = [f"{text} of {'axes' if axes[1:] else 'axis'} {', '.join(map(str, axes))}" for text, axes in alike.items()]
    return f"{', '.join(parts)}{of}"


def _row(place: int, title: str, contract: str, slots: Sequence[Slot]) -> Row:
    own = [slot for slot in slots if _place(slot) == place]
    main = tuple(slot for slot in own if slot.kind != "axis")
    return Row(place, title, contract, main, tuple(slot for slot in own if slot.kind == "axis"))


def _lines(rows: Sequence[Row], groups: Sequence[Group], height: int) -> list[Line]:
    left = {row.place: (number + 0.5) * height / len(rows) for number, row in enumerate(rows)}
    step = height / len(groups) if groups else 0.0
    return [
        Line(group.place, left[group.place], (number + 0.5) * step, group.slots[0].kind == "axis")
        for number, group in enumerate(groups)
    ]
