"""Tables of the memory of an SDFG."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gtstub.tools.memory.memory import Memory, StorageUse
from gtstub.util.console import make_table, print_parts
from gtstub.util.legend import WIDTH, Legend

if TYPE_CHECKING:
    from rich.table import Table


def print_memory(name: str, memory: Memory) -> None:
    """Prints a row for each transient and for each total, and who allocates how much."""
    common = {name: name for name in ("allocated", "storage", "lifetime", "branch", "bytes")}
    names = {"transient": "name", "in": "nested_in", **common, "size": "size", "repeated": "repeated"}
    transients = _columns(memory.transients, names)
    legend = Legend(*itertools.chain(*transients.values()))
    for column, shorten in {"size": legend.terms, "branch": legend.repeated, "repeated": legend.repeated}.items():
        transients[column] = shorten(transients[column])
    totals = _columns(memory.totals, {**common, "at least": "at_least"})
    print_parts(_table(transients), str(legend), _table(totals), "\n".join(_summary(name, memory)), width=WIDTH)


def _columns(rows: Sequence[object], members: Mapping[str, str]) -> dict[str, list[str]]:
    """Members of objects by column."""
    return {column: [_text(getattr(row, member)) for row in rows] for column, member in members.items()}


def _table(columns: Mapping[str, Sequence[str]]) -> Table:
    """A table without the columns that are empty, because a terminal has no room for them."""
    shown = {column: texts for column, texts in columns.items() if any(texts)}
    return make_table(*shown, rows=zip(*shown.values(), strict=True))


def _text(value: str | tuple[str, ...] | int | None) -> str:
    return "; ".join(value) if isinstance(value, tuple) else value if isinstance(value, str) else _number(value)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _summary(name: str, memory: Memory) -> Iterator[str]:
    if not memory.uses:
        yield f"SDFG '{name}' has no transient arrays."
    for use in memory.uses:
        if use.allocated in _SENTENCES:
            yield f"{_SENTENCES[use.allocated]} {_bytes(use)}."
    if pooled := sum(each.is_pooled for each in memory.transients):
        yield f"{pooled} of these arrays are pooled: the process keeps their memory for the next call."
    if memory.unknown:
        yield f"Not known: {', '.join(f"'{symbol}'" for symbol in memory.unknown)}. '--set' gives them values."


_SENTENCES = {"init": "The handle keeps", "call": "A call allocates", "caller": "The caller provides"}


def _bytes(use: StorageUse) -> str:
    text = f"{_number(use.bytes)} bytes in {use.storage}"
    if use.bytes is None:
        text += f", at least {use.at_least:,}"
    if use.peak is not None and use.peak != use.bytes:
        text += f", at most {use.peak:,} of them at one time"
    return text
