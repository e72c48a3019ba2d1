"""Tables of the memory of an SDFG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gtstub.analysis.memory import Memory, StorageUse
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table


def print_memory(name: str, memory: Memory) -> None:
    """Prints a row for each transient and for each total, and who allocates how much."""
    common = {name: name for name in ("allocated", "storage", "lifetime", "branch", "bytes")}
    names = {"transient": "name", "in": "nested_in", **common, "size": "size", "repeated": "repeated"}
    transients = _table(memory.transients, names)
    totals = _table(memory.totals, {**common, "at least": "at_least"})
    print_parts(transients, totals, "\n".join(_summary(name, memory)))


def _table(rows: Sequence[object], members: Mapping[str, str]) -> Table:
    """Members of objects by column, without the columns that are empty, because a terminal has no room for them."""
    texts = {column: [_text(getattr(row, member)) for row in rows] for column, member in members.items()}
    shown = {column: those for column, those in texts.items() if any(those)}
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
