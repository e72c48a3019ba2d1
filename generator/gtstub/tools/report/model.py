"""
The data of a report. It contains every decision; the templates in templates/report/ only arrange it.

Texts are for people, without any markup. Places of leaves, slots and kernels count from 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gtstub.errors import GtstubError
from gtstub.tools.memory.memory import Memory
from gtstub.tools.report.kernels import Kernel
from gtstub.tools.rules import Result

SCHEMA = "gtstub/report/1"

Tone = Literal["plain", "good", "advice", "bad", "unknown"]
"""How a fact is to be taken: as a mere fact, as it should be, as something to look at, as wrong, as not known."""


class ReportError(GtstubError):
    """An entry cannot be reported on, or a page cannot be written."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class Chip:
    """A fact of the verdict: `value` is a few words, `note` one sentence or empty."""

    name: str
    value: str
    note: str
    tone: Tone = "plain"


@dataclasses.dataclass(frozen=True)
class UsedWhen:
    """The `indices` that each call accesses for which all `conditions` hold. `when` is their text, empty for none."""

    indices: str
    when: str
    conditions: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """
    An argument that calls pass, with its contract in words. `agrees` says with what it must agree. `fortran` is its
    declaration, empty if the program has no Fortran interface. `slots` are the places of the slots that it fills.
    """

    index: int
    path: str
    name: str
    kind: str
    contract: str
    device: str
    used: tuple[UsedWhen, ...]
    agrees: tuple[str, ...]
    fortran: str
    slots: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Slot:
    """An argument of the SDFG's C function. `leaf` is the place of the leaf that fills it; None for a metric."""

    index: int
    name: str
    c_type: str
    kind: str
    source: str
    leaf: int | None


@dataclasses.dataclass(frozen=True)
class Constant:
    """What was compiled in: `what` says in which role, `value` is its text."""

    name: str
    value: str
    what: str


@dataclasses.dataclass(frozen=True)
class Timer:
    """Calls of the program in a profile, in seconds: the first calls, or all others. `share` is that of the profile."""

    what: str
    calls: int
    whole: float
    conversion: float
    sdfg: float
    total: float
    share: float


@dataclasses.dataclass(frozen=True)
class Ingredient:
    """A value that the entry was built from, under its dotted path; `group` is the path's first name."""

    group: str
    path: str
    value: str


@dataclasses.dataclass(frozen=True)
class ProgramReport:
    """
    The report of one entry. `sizes` are the values of symbols that its memory was computed with. `absent` maps the name
    of a section that could not be made to the reason, a sentence: 'fortran', 'kernels', 'memory', 'findings', 'timers'.
    """

    name: str
    sdfg_name: str
    key: str
    device: str
    static: Mapping[str, str]
    chips: tuple[Chip, ...]
    leaves: tuple[Leaf, ...]
    slots: tuple[Slot, ...]
    remarks: tuple[str, ...]
    constants: tuple[Constant, ...]
    fortran_module: str
    kernels: tuple[Kernel, ...]
    memory: Memory | None
    sizes: Mapping[str, int]
    findings: Result | None
    timers: tuple[Timer, ...]
    ingredients: tuple[Ingredient, ...]
    absent: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """An entry of a cache that has no report, and why."""

    key: str
    problem: str


@dataclasses.dataclass(frozen=True)
class Change:
    """Something that differs between two entries; a side is None if it lacks it."""

    what: str
    old: str | None
    new: str | None


@dataclasses.dataclass(frozen=True)
class Changes:
    """The differences of one section. `equal` counts what does not differ; `absent` is why it was not compared."""

    title: str
    changes: tuple[Change, ...]
    equal: int
    absent: str = ""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two entries, and their differences section by section."""

    old: str
    new: str
    sections: tuple[Changes, ...]


def to_json(
    reports: Sequence[ProgramReport], unreadable: Sequence[Unreadable] = (), comparison: Comparison | None = None
) -> dict[str, Any]:
    """The document (docs/formats.md) of one entry, of a cache's entries, or of two and their comparison."""
    return {
        "schema": SCHEMA,
        "entries": list(map(dataclasses.asdict, reports)),
        "unreadable": list(map(dataclasses.asdict, unreadable)),
        "comparison": None if comparison is None else dataclasses.asdict(comparison),
    }
