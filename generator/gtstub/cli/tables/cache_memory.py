"""The table and the JSON of 'gtstub memory --cache'."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from gtstub.entries.cache.wording import cut, whole
from gtstub.tools.report.memory import Amount, EntryMemory, kept_together, largest, peaks_together
from gtstub.util.console import make_table, print_parts


def cache_memory_to_json(entries: Sequence[EntryMemory]) -> dict[str, Any]:
    totals = {"largest": largest(entries), "kept": kept_together(entries)}
    return {
        "entries": list(map(dataclasses.asdict, entries)),
        **{name: dataclasses.asdict(amount) for name, amount in totals.items()},
    }


def print_cache_memory(entries: Sequence[EntryMemory]) -> None:
    """Prints a row for each entry, the largest first, and what all of them take."""
    columns = ("key", "static arguments", "in a call", "at one time", "allocations", "where", "kept", "missing")
    table = make_table(*columns, rows=map(_row, entries))
    print_parts(table, "\n".join(_totals(entries)))


def _row(entry: EntryMemory) -> Iterator[str]:
    yield entry.key
    yield cut(", ".join(f"{whole(name)}={whole(value)}" for name, value in entry.static.items()))
    yield _bytes(entry.call)
    yield _bytes(entry.peak)
    yield f"{entry.allocations}, {entry.repeated} repeated" if entry.repeated else str(entry.allocations)
    yield ", ".join(entry.where)
    yield _bytes(entry.kept)
    yield " ".join(entry.missing)


def _totals(entries: Sequence[EntryMemory]) -> Iterator[str]:
    if not entries:
        yield "The cache has no entry."
        return
    yield f"The largest call holds {_bytes(largest(entries))} bytes at one time, which the pool keeps for all programs."
    yield f"If each program kept its own, that would be {_bytes(peaks_together(entries))} bytes."
    yield f"The handles of all entries together keep {_bytes(kept_together(entries))} bytes."
    if unknown := sum(each.call.bytes is None or each.kept.bytes is None for each in entries):
        yield f"{unknown} of {len(entries)} entries have sizes that are not known. '--size' and '--set' give values."


def _bytes(amount: Amount) -> str:
    if amount.bytes is not None:
        return f"{amount.bytes:,}"
    return f"at least {amount.at_least:,}" if amount.at_least else "?"
