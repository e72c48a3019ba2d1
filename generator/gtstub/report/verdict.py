"""The facts that a page opens with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gtstub.report.model import Chip, Finding, Findings, Kernel, Leaf, Memory, Slot, Tone, Total
from gtstub.report.wording import byte_size, count

PER_CALL = frozenset({"Scope", "State", "SDFG", "Global"})
"""DaCe's lifetimes of arrays that a call may allocate. `Persistent` and `External` ones outlive it."""


def chips(
    leaves: Sequence[Leaf],
    slots: Sequence[Slot],
    kernels: Sequence[Kernel] | None,
    memory: Memory | None,
    findings: Findings | None,
) -> tuple[Chip, ...]:
    """The verdict; a section that could not be made has None here, and the value '?'."""
    symbols = sum(slot.kind == "axis" for slot in slots)
    note = f"{count(symbols, 'of them is a size, start or stride', 'of them are sizes, starts and strides')}"
    arguments = Chip("arguments → slots", f"{len(leaves)} → {len(slots)}", note)
    return (arguments, _kernels(kernels), _memory(memory), _findings(findings))


def _kernels(kernels: Sequence[Kernel] | None) -> Chip:
    if kernels is None:
        return Chip("kernels", "?", "The entry keeps no SDFG.", "unknown")
    deepest = 1 + max((each.depth for each in kernels), default=-1)
    note = f"the longest chain has {count(deepest, 'kernel')}" if kernels else ""
    return Chip("kernels", str(len(kernels)), note)


def _memory(memory: Memory | None) -> Chip:
    name = "memory per call"
    if memory is None:
        return Chip(name, "?", "Not analysed.", "unknown")
    call = [total for total in memory.totals if total.lifetime in PER_CALL]
    kept = [total for total in memory.totals if total.lifetime not in PER_CALL]
    note = f"and {_sum(kept)} between calls" if kept else "nothing between calls"
    is_known = all(total.bytes is not None for total in memory.totals)
    if not is_known:
        note += "; '--size' and '--set' give sizes"
    return Chip(name, _sum(call), note, "plain" if is_known else "unknown")


def _sum(totals: Iterable[Total]) -> str:
    """All outside branches, and the branch with the most: a call takes one of several."""
    least, branches, is_known = 0, [0], True
    for total in totals:
        is_known &= total.bytes is not None
        size = total.at_least if total.bytes is None else total.bytes
        if total.branch:
            branches.append(size)
        else:
            least += size
    text = byte_size(least + max(branches))
    return text if is_known else (f"≥ {text}" if least + max(branches) else "?")


def _findings(findings: Findings | None) -> Chip:
    name = "rules broken / advice"
    if findings is None:
        return Chip(name, "?", "Not checked.", "unknown")
    errors, unknown, advice = (_of_level(findings.findings, level) for level in ("error", "unknown", "advice"))
    parts = [count(unknown, "finding is", "findings are") + " not decidable"] if unknown else []
    if findings.not_checked:
        parts.append(f"{count(len(findings.not_checked), 'rule was', 'rules were')} not checked")
    tone: Tone = "bad" if errors else "advice" if advice else "unknown" if unknown else "good"
    return Chip(name, f"{errors} / {advice}", "; ".join(parts), tone)


def _of_level(findings: Iterable[Finding], level: str) -> int:
    return sum(each.level == level for each in findings)
