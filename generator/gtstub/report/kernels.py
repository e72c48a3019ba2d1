"""The kernels of an SDFG, as a report holds them."""

from __future__ import annotations

from gtstub.analysis import kernels as analysis
from gtstub.report.model import Kernel, ReadFrom
from gtstub.sdfg.model import Sdfg


def kernels(sdfg: Sdfg) -> tuple[Kernel, ...]:
    found = analysis.kernels(sdfg)
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
