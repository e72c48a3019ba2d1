"""Tables of the memory of an SDFG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gtstub.analysis.memory import Memory, Use
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table


def print_memory(name: str, memory: Memory) -> None:
    """Prints a row for each transient and for each total, and who allocates how much."""
    transients = _table(
        {
            "transient": each.name,
            "in": each.nested_in,
            "allocated": each.allocated,
            "storage": each.storage,
            "lifetime": each.lifetime,
            "branch": each.branch,
            "bytes": _number(each.bytes),
            "size": each.size,
            "repeated": "; ".join(each.repeated),
        }
        for each in memory.transients
    )
    totals = _table(
        {
            "allocated": each.allocated,
            "storage": each.storage,
            "lifetime": each.lifetime,
            "branch": each.branch,
            "bytes": _number(each.bytes),
            "at least": _number(each.at_least),
        }
        for each in memory.totals
    )
    print_parts(transients, totals, "\n".join(_summary(name, memory)))


def _table(rows: Iterable[Mapping[str, str]]) -> Table:
    """A table without the columns that are empty, because a terminal has no room for them."""
    found = list(rows)
    columns = [name for name in (found[0] if found else ()) if any(row[name] for row in found)]
    return make_table(*columns, rows=([row[name] for name in columns] for row in found))


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _summary(name: str, memory: Memory) -> Iterator[str]:
    if not memory.uses:
        yield f"SDFG '{name}' has no transient arrays."
    for use in memory.uses:
        if use.allocated in _SENTENCES:
            yield f"{_SENTENCES[use.allocated]} {_bytes(use)}."
    if memory.unknown:
        yield f"Not known: {', '.join(f"'{symbol}'" for symbol in memory.unknown)}. '--set' gives them values."


_SENTENCES = {"init": "The handle keeps", "call": "A call allocates", "caller": "The caller provides"}


def _bytes(use: Use) -> str:
    text = f"{_number(use.bytes)} bytes in {use.storage}"
    if use.bytes is None:
        text += f", at least {use.at_least:,}"
    if use.peak is not None and use.peak != use.bytes:
        text += f", at most {use.peak:,} of them at one time"
    return text
