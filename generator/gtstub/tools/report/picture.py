"""
The picture of the kernels: a band for each rank, from top to bottom, with the kernels of equal depth side by side.

A band has as many lines of boxes as it needs, so that the picture stays as wide as a page. Only edges from one rank to
the next are drawn; longer ones would cross everything between, and are left to the table.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Mapping, Sequence

from gtstub.tools.report.kernels import Kernel

COLUMNS = 6
BOX_WIDTH, BOX_HEIGHT, GAP, RISE = 164, 42, 14, 34
"""Pixels: a box, the space between two in a line, and that between two ranks."""

MOST = 240
"""The most kernels that are drawn. A picture of more would be taller than anybody scrolls."""

LONGEST = 20
"""The most characters in a box."""


@dataclasses.dataclass(frozen=True)
class Box:
    kernel: int
    x: int
    y: int
    title: str
    dims: str


@dataclasses.dataclass(frozen=True)
class Curve:
    """From the bottom of the writer's box to the top of the reader's."""

    writer: int
    reader: int
    path: str


@dataclasses.dataclass(frozen=True)
class Picture:
    """Sizes in pixels. `left_out` is the number of edges that are not drawn."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]
    bands: tuple[tuple[int, int], ...]
    left_out: int


def picture(kernels: Sequence[Kernel]) -> Picture | None:
    """None if there is nothing to draw, or too much."""
    if not kernels or len(kernels) > MOST:
        return None
    depth = operator.attrgetter("depth")
    ranks = [list(rank) for _, rank in itertools.groupby(sorted(kernels, key=depth), key=depth)]
    widest = min(COLUMNS, max(map(len, ranks)))
    place: dict[int, tuple[int, int]] = {}
    bands = []
    top = 0
    for rank in ranks:
        lines = list(itertools.batched(sorted(rank, key=lambda kernel: _wanted(kernel, place)), COLUMNS))
        for number, line in enumerate(lines):
            left = GAP + (widest - len(line)) * (BOX_WIDTH + GAP) // 2
            for column, kernel in enumerate(line):
                place[kernel.index] = (left + column * (BOX_WIDTH + GAP), top + GAP // 2 + number * (BOX_HEIGHT + GAP))
        bands.append((top, len(lines) * (BOX_HEIGHT + GAP)))
        top += len(lines) * (BOX_HEIGHT + GAP) + RISE
    curves = [
        Curve(edge.kernel, kernel.index, _curve(place[edge.kernel], place[kernel.index]))
        for kernel in kernels
        for edge in kernel.reads_from
        if kernel.depth - kernels[edge.kernel].depth == 1
    ]
    boxes = [Box(kernel.index, *place[kernel.index], _title(kernel), _cut(kernel.dims)) for kernel in kernels]
    every = sum(len(kernel.reads_from) for kernel in kernels)
    return Picture(
        width=GAP + widest * (BOX_WIDTH + GAP),
        height=top - RISE,
        boxes=tuple(boxes),
        curves=tuple(curves),
        bands=tuple(bands),
        left_out=every - len(curves),
    )


def _wanted(kernel: Kernel, place: Mapping[int, tuple[int, int]]) -> tuple[float, int]:
    """Where a kernel would cross the fewest edges: below the middle of those that it reads from."""
    above = [place[edge.kernel][0] for edge in kernel.reads_from if edge.kernel in place]
    return (sum(above) / len(above) if above else 0.0, kernel.index)


def _curve(writer: tuple[int, int], reader: tuple[int, int]) -> str:
    x0, y0 = writer[0] + BOX_WIDTH // 2, writer[1] + BOX_HEIGHT
    x1, y1 = reader[0] + BOX_WIDTH // 2, reader[1]
    middle = (y0 + y1) // 2
    return f"M{x0} {y0}C{x0} {middle} {x1} {middle} {x1} {y1}"


def _title(kernel: Kernel) -> str:
    more = f" +{len(kernel.writes) - 1}" if kernel.writes[1:] else ""
    name = kernel.writes[0] if kernel.writes else kernel.label
    return f"{kernel.index} {_cut(name, LONGEST - len(more) - len(str(kernel.index)) - 1)}{more}"


def _cut(text: str, longest: int = LONGEST + 2) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
