"""What differs between two entries, section by section."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping

from gtstub.tools.report.model import Change, Changes, Comparison, Leaf, ProgramReport
from gtstub.tools.report.wording import WHEN, byte_size

Texts = Mapping[str, str]
"""What a section has, by name: two entries differ in the names and in the texts."""


def compare(old: ProgramReport, new: ProgramReport) -> Comparison:
    """
    The differences of two entries. Slots are compared by name, so that a slot which is only at another place does not
    differ; kernels by what they write and over which dimensions, because DaCe numbers their labels anew in each build.
    """
    sections: Mapping[str, Callable[[ProgramReport], Texts]] = {
        "Slots": _slots,
        "Contracts": _contracts,
        "Compiled in": _constants,
        "Kernels": _kernels,
        "Memory": _memory,
        "Findings": _findings,
        "Ingredients": _ingredients,
    }
    return Comparison(old.key, new.key, tuple(_section(title, of, old, new) for title, of in sections.items()))


def _section(title: str, texts_of: Callable[[ProgramReport], Texts], *reports: ProgramReport) -> Changes:
    for report in reports:
        if title.lower() in report.absent:
            return Changes(title, (), 0, f"{report.key}: {report.absent[title.lower()]}")
    old, new = map(texts_of, reports)
    changes = tuple(
        Change(what, old.get(what), new.get(what))
        for what in dict.fromkeys((*old, *new))
        if old.get(what) != new.get(what)
    )
    return Changes(title, changes, sum(old[what] == new.get(what) for what in old))


def _slots(report: ProgramReport) -> Texts:
    return {slot.name: f"{slot.c_type}, {slot.source}" for slot in report.slots}


def _contracts(report: ProgramReport) -> Texts:
    return {
        leaf.path: "; ".join(filter(None, (leaf.contract, leaf.device, *_uses(leaf), *leaf.agrees)))
        for leaf in report.leaves
    }


def _uses(leaf: Leaf) -> list[str]:
    return [f"{use.indices} if {use.when}" if use.when else use.indices for use in leaf.used]


def _constants(report: ProgramReport) -> Texts:
    return _numbered((f"{each.name} {each.what}", each.value) for each in report.constants)


def _kernels(report: ProgramReport) -> Texts:
    return _numbered(
        (
            f"{', '.join(kernel.writes)} on {kernel.dims}",
            f"{', '.join(kernel.ranges)}; reads {', '.join(kernel.reads) or 'nothing'}; {kernel.tasklets} tasklets",
        )
        for kernel in report.kernels
    )


def _memory(report: ProgramReport) -> Texts:
    totals = () if report.memory is None else report.memory.totals
    return _numbered(
        (
            ", ".join(filter(None, (WHEN[total.allocated], total.storage, total.lifetime, total.branch))),
            f"? (at least {byte_size(total.at_least)})" if total.bytes is None else byte_size(total.bytes),
        )
        for total in totals
    )


def _findings(report: ProgramReport) -> Texts:
    found = () if report.findings is None else report.findings.findings
    return _numbered((f"rule {each.rule or '–'} ({each.adr or '–'}): {each.data}", each.message) for each in found)


def _ingredients(report: ProgramReport) -> Texts:
    return _numbered((each.path, each.value) for each in report.ingredients)


def _numbered(items: Iterable[tuple[str, str]]) -> Texts:
    """Texts by name; names that occur again get a number."""
    seen: collections.Counter[str] = collections.Counter()
    texts = {}
    for name, text in items:
        seen[name] += 1
        texts[name if seen[name] == 1 else f"{name} ({seen[name]})"] = text
    return texts
