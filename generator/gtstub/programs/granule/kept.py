"""Writes the file of kept arrays, `kept.bin`, which runtime/steps/granule/kept.c maps. docs/formats.md describes it."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from gtstub.programs.granule.description import Description
from gtstub.programs.layout import Layout

FILE = "kept.bin"

HEAD = struct.Struct("=16sIIQQQQ64s")
PLACE = struct.Struct("=QQ")
MAGIC = b"gtstub kept 1"
BYTE_ORDER_MARK = 0x01020304

PART = 0x10000
"""Each part begins at a multiple of this, the largest size of a page."""

ALIGNMENT = 64
"""Of the first byte of an array: a cache line."""

OF_HOST, IS_CONSTANT, IS_WRITTEN, IS_ZERO, IS_TEMPORARY = range(5)


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where an array is: a part, and the offset of its first byte there."""

    part: int
    offset: int
    layout: Layout


def write_kept(
    folder: Path,
    description: Description,
    digest: str,
    layouts: Sequence[Layout],
    temporaries: Collection[int],
    writable: Collection[int],
    features: Iterable[str],
) -> None:
    """
    Writes the values that the arrays have now, except `temporaries`, which begin as zero. The memory of `writable`
    arrays can be written also if no step writes them, so that they can be swapped. `features` are those that the
    programs need of the CPU. Raises OSError.
    """
    places, ends = _places(description, layouts, temporaries, writable)
    text = " ".join(sorted(features)).encode() + b"\0"
    head_size = HEAD.size + len(places) * PLACE.size + len(text)
    head_size, *sizes = (-(-each // PART) * PART for each in (head_size, *ends[1:]))
    starts = {IS_CONSTANT: head_size, IS_WRITTEN: head_size + sizes[0]}
    with (folder / FILE).open("wb") as file:
        file.write(HEAD.pack(MAGIC, BYTE_ORDER_MARK, len(places), head_size, *sizes, digest.encode()))
        file.writelines(PLACE.pack(place.part, place.offset) for place in places)
        file.write(text)
        for place in places:
            if place.part in starts:
                file.seek(starts[place.part] + place.offset)
                file.write(place.layout.raw().data)
        file.truncate(head_size + sizes[0] + sizes[1])


def _places(
    description: Description, layouts: Sequence[Layout], temporaries: Collection[int], writable: Collection[int]
) -> tuple[list[_Place], list[int]]:
    """The places of all arrays, and the ends of the parts. Arrays that begin as zero have no bytes in the file."""
    ends = [0, 0, 0, 0]
    places = []
    for number, (array, layout) in enumerate(zip(description.arrays, layouts, strict=True)):
        if array.is_argument:
            places.append(_Place(OF_HOST, 0, layout))
            continue
        is_zero = number in temporaries or not layout.raw().any()
        part = IS_ZERO if is_zero else IS_WRITTEN if array.written or number in writable else IS_CONSTANT
        begin = -(-ends[part] // ALIGNMENT) * ALIGNMENT
        places.append(_Place(IS_TEMPORARY if number in temporaries else part, begin, layout))
        ends[part] = begin + layout.bytes
    return places, ends
