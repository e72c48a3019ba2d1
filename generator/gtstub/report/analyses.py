"""What gtstub.analysis says of an SDFG: its kernels, its memory and its findings, as a report holds them."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping

from gtstub.analysis.document import Document
from gtstub.analysis.kernels import kernels as kernels_of
from gtstub.report.model import Finding, Findings, Kernel, Memory, ReadFrom, Total, Transient
from gtstub.signature.model import ProgramSignature

WORST_FIRST = ("error", "unknown", "advice", "info")


def kernels(document: Document) -> tuple[Kernel, ...]:
    found = kernels_of(document)
    return tuple(
        Kernel(
            index=each.index,
            label=each.label,
            state=each.state,
            where=each.where,
            dims=", ".join(variable.dim for variable in each.ranges),
            ranges=tuple(variable.text for variable in each.ranges),
            reads=each.reads,
            writes=each.writes,
            reads_from=tuple(
                ReadFrom(other.writer, other.data) for other in found.dependences if other.reader == each.index
            ),
            tasklets=each.tasklets,
            depth=each.depth,
        )
        for each in found.kernels
    )


def memory(document: Document, sizes: Mapping[str, int]) -> Memory | None:
    """None if this gtstub cannot analyse memory."""
    if importlib.util.find_spec("gtstub.analysis.memory") is None:
        return None
    found = importlib.import_module("gtstub.analysis.memory").memory(document, sizes)
    return Memory(
        tuple(Transient(**dataclasses.asdict(each)) for each in found.transients),
        tuple(Total(**dataclasses.asdict(each)) for each in found.totals),
        sizes,
    )


def findings(document: Document, program: ProgramSignature) -> Findings | None:
    """None if this gtstub has no rules."""
    if importlib.util.find_spec("gtstub.analysis.rules") is None:
        return None
    result = importlib.import_module("gtstub.analysis.rules").check(document, program=program)
    rows = (Finding(**dataclasses.asdict(each)) for each in result.findings)
    ordered = sorted(rows, key=lambda one: (WORST_FIRST.index(one.level), one.rule, one.adr, one.state, one.data))
    return Findings(tuple(ordered), dict(result.not_checked))
