"""What the programs of a cache allocate: the memory of each entry, as `gtstub memory` computes it for one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gtstub.entries.cache.entry import COMPILED_SDFG
from gtstub.entries.cache.inspection import signatures
from gtstub.entries.cache.inventory import Item
from gtstub.errors import GtstubError
from gtstub.stub.sdfg.read import read
from gtstub.tools.memory.memory import Allocation, Memory, memory
from gtstub.tools.memory.sizes import SharedSizes, symbol_sizes


@dataclasses.dataclass(frozen=True)
class Amount:
    """Bytes, None if one of the sizes is not known, and those that are known."""

    bytes: int | None = 0
    at_least: int = 0


@dataclasses.dataclass(frozen=True)
class EntryMemory:
    """
    The memory that the program of an entry allocates: in each `call`, at most at one time in a call (`peak`), and that
    its handle keeps. `allocations` counts the arrays of a call, `repeated` those in maps and loops, which allocate them
    again in each iteration. `where` are their storages. `missing` says in sentences why a figure is not known.
    """

    name: str
    key: str
    static: dict[str, Any]
    call: Amount = Amount()
    peak: Amount = Amount()
    kept: Amount = Amount()
    allocations: int = 0
    repeated: int = 0
    where: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def memory_of_entries(items: Sequence[Item], sizes: SharedSizes) -> list[EntryMemory]:
    """The memory of entries with these sizes, that of the most bytes in a call first."""
    return sorted((_memory_of(item, sizes) for item in items), key=lambda each: each.call.at_least, reverse=True)


def largest(entries: Sequence[EntryMemory]) -> Amount:
    """The most bytes at one time in a call. Calls are one after the other, so they are not added."""
    peaks = [each.peak for each in entries]
    most = max((peak.at_least for peak in peaks), default=0)
    return Amount(None if any(peak.bytes is None for peak in peaks) else most, most)


def peaks_together(entries: Sequence[EntryMemory]) -> Amount:
    """The sum of what each program holds at one time."""
    return _sum([each.peak for each in entries])


def kept_together(entries: Sequence[EntryMemory]) -> Amount:
    """The bytes that the handles of all entries keep."""
    return _sum([each.kept for each in entries])


def _memory_of(item: Item, sizes: SharedSizes) -> EntryMemory:
    unknown = Amount(None, 0)
    try:
        manifest, sdfg, program = signatures(item.path)
        if COMPILED_SDFG not in manifest.files:
            missing = f"The entry keeps no '{COMPILED_SDFG}', because an older gtstub built it: build it again."
            return EntryMemory(item.name, item.key, item.static, unknown, unknown, unknown, missing=(missing,))
        found = memory(read(item.path / COMPILED_SDFG), symbol_sizes(program, sdfg, *sizes.fitting(program, sdfg)))
    except (GtstubError, OSError) as error:
        return EntryMemory(item.name, item.key, item.static, unknown, unknown, unknown, missing=(str(error),))
    arrays = [each for each in found.transients if each.allocated == "call"]
    return EntryMemory(
        item.name,
        item.key,
        item.static,
        _use(found, "call"),
        _sum([Amount(use.peak, use.peak_at_least) for use in found.uses if use.allocated == "call"]),
        _use(found, "init"),
        len(arrays),
        sum(bool(each.repeated) for each in arrays),
        tuple(sorted({each.storage for each in arrays})),
        tuple(_missing(found)),
    )


def _missing(found: Memory) -> Iterator[str]:
    if found.unknown:
        yield f"Not known: {', '.join(f"'{name}'" for name in found.unknown)}."
    others = [
        f"'{each.name}' of {each.size} bytes"
        for each in found.transients
        if each.bytes is None and each.allocated in ("call", "init") and not _lacks(each.size, found.unknown)
    ]
    if others:  # their sizes depend on data, are negative, or larger than any memory (docs/memory.md)
        yield f"No value: {', '.join(others)}."


def _lacks(size: str, unknown: Sequence[str]) -> bool:
    """Whether all that a size lacks are values of symbols."""
    names = re.findall(r"[^\W\d]\w*\??", size)
    return "?" not in size and any(name in unknown for name in names)


def _use(found: Memory, allocated: Allocation) -> Amount:
    return _sum([Amount(use.bytes, use.at_least) for use in found.uses if use.allocated == allocated])


def _sum(amounts: Sequence[Amount]) -> Amount:
    known = sum(each.at_least for each in amounts)
    return Amount(None if any(each.bytes is None for each in amounts) else known, known)
