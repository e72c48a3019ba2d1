"""Tables of the memory of an SDFG."""

from __future__ import annotations

from collections.abc import Iterator

from gtstub.analysis.memory import Memory, Use
from gtstub.util.console import make_table, print_parts


def print_memory(name: str, memory: Memory) -> None:
    """Prints a row for each transient and for each total, and who allocates how much."""
    transients = make_table(
        "transient", "in", "allocated", "storage", "lifetime", "branch", "bytes", "size", "repeated"
    )
    for each in memory.transients:
        transients.add_row(
            each.name,
            each.nested_in,
            each.allocated,
            each.storage,
            each.lifetime,
            each.branch,
            _number(each.bytes),
            each.size,
            "; ".join(each.repeated),
        )
    totals = make_table("allocated", "storage", "lifetime", "branch", "bytes", "at least")
    for total in memory.totals:
        known = _number(total.bytes), _number(total.at_least)
        totals.add_row(total.allocated, total.storage, total.lifetime, total.branch, *known)
    print_parts(transients, totals, "\n".join(_summary(name, memory)))


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _summary(name: str, memory: Memory) -> Iterator[str]:
    if not memory.uses:
        yield f"SDFG '{name}' has no transient arrays."
    for use in memory.uses:
        if use.allocated in _SENTENCES:
            yield f"{_SENTENCES[use.allocated]} {_bytes(use)}."
    if memory.unknown:
        yield f"Not known: {', '.join(f"'{symbol}'" for symbol in memory.unknown)}."


_SENTENCES = {"init": "The handle keeps", "call": "A call allocates", "caller": "The caller provides"}


def _bytes(use: Use) -> str:
    text = f"{_number(use.bytes)} bytes in {use.storage}"
    if use.bytes is None:
        text += f", at least {use.at_least:,}"
    if use.peak is not None and use.peak != use.bytes:
        text += f", at most {use.peak:,} of them at one time"
    return text
