"""The facts that a page opens with."""

from __future__ import annotations

from collections.abc import Sequence

from gtstub.tools.memory.memory import Allocation, Memory, StorageUse
from gtstub.tools.report.kernels import Kernel
from gtstub.tools.report.model import Chip, Leaf, Slot, Tone
from gtstub.tools.report.wording import WHEN, byte_size, count
from gtstub.tools.rules import Result

KEPT: Sequence[Allocation] = ("init", "caller")
"""Memory that a call does not allocate itself."""


def chips(
    leaves: Sequence[Leaf],
    slots: Sequence[Slot],
    kernels: Sequence[Kernel] | None,
    memory: Memory | None,
    result: Result | None,
) -> tuple[Chip, ...]:
    """The verdict; a section that could not be made has None here, and the value '?'."""
    symbols = sum(slot.kind == "axis" for slot in slots)
    note = f"{count(symbols, 'of them is a size, start or stride', 'of them are sizes, starts and strides')}"
    arguments = Chip("arguments → slots", f"{len(leaves)} → {len(slots)}", note)
    return (arguments, _kernels(kernels), _memory(memory), _findings(result))


def _kernels(kernels: Sequence[Kernel] | None) -> Chip:
    if kernels is None:
        return Chip("kernels", "?", "The entry keeps no lowered SDFG.", "unknown")
    deepest = 1 + max((each.depth for each in kernels), default=-1)
    note = f"the longest chain has {count(deepest, 'kernel')}" if kernels else ""
    return Chip("kernels", str(len(kernels)), note)


def _memory(memory: Memory | None) -> Chip:
    name = "memory per call"
    if memory is None:
        return Chip(name, "?", "The entry keeps no compiled SDFG.", "unknown")
    kept = [f"{_sum(memory, where)} {WHEN[where]}" for where in KEPT if _uses(memory, where)]
    note = f"and {' and '.join(kept)}" if kept else ""
    is_known = all(use.peak is not None for use in memory.uses)
    if not is_known:
        note += f"{'; ' if note else ''}'--size' and '--set' give sizes"
    return Chip(name, _sum(memory, "call"), note, "plain" if is_known else "unknown")


def _uses(memory: Memory, where: Allocation) -> list[StorageUse]:
    return [use for use in memory.uses if use.allocated == where]


def _sum(memory: Memory, where: Allocation) -> str:
    """What is allocated in one way at one time, in all storages."""
    uses = _uses(memory, where)
    least = sum(use.peak_at_least for use in uses)
    if all(use.peak is not None for use in uses):
        return byte_size(least)
    return f"≥ {byte_size(least)}" if least else "?"


def _findings(result: Result | None) -> Chip:
    name = "rules broken / advice"
    if result is None:
        return Chip(name, "?", "The entry keeps no lowered SDFG.", "unknown")
    errors, unknown, advice = (_rules(result, level) for level in ("error", "unknown", "advice"))
    parts = [f"{count(unknown, 'rule is', 'rules are')} not decidable"] if unknown else []
    if result.not_checked:
        parts.append(f"{count(len(result.not_checked), 'rule was', 'rules were')} not checked")
    tone: Tone = "bad" if errors else "advice" if advice else "unknown" if unknown else "good"
    return Chip(name, f"{errors} / {advice}", "; ".join(parts), tone)


def _rules(result: Result, level: str) -> int:
    """How many rules have a finding of a level."""
    return len({(each.rule, each.adr) for each in result.findings if each.level == level})
