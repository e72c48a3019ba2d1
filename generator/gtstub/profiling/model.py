"""What a profile has recorded, and where its time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Times:
    """Seconds. The median is that of a histogram, within 1.6 % of the exact one; the others are exact to 1 ns."""

    min: float
    median: float
    max: float
    total: float


@dataclass(frozen=True)
class Calls:
    """Calls of one program that did not fail, and their times; `whole` is `conversion` and `sdfg` of each call."""

    calls: int
    conversion: Times
    sdfg: Times
    whole: Times


@dataclass(frozen=True)
class ProgramTimes:
    """
    One program, or one variant of it. `initial` are its first call and those that initialised the SDFG's handle again,
    `run` all others; None where there were none. `static` are its static arguments.
    """

    name: str
    sdfg_digest: str
    static: Mapping[str, bool | int | float]
    initial: Calls | None
    run: Calls | None

    @property
    def calls(self) -> int:
        return sum(part.calls for part in (self.initial, self.run) if part is not None)


class Profile:
    """What a profile has recorded: nothing until it has ended. Programs with the greatest total of `run` come first."""

    wall: float
    """Seconds from the begin to the end of the profile."""
    programs: tuple[ProgramTimes, ...]

    document: Mapping[str, Any]
    """The whole profile, as docs/formats.md describes it."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self.fill(document or {"schema": "gtstub/profile/1", "wall": 0.0, "programs": []})

    def fill(self, document: Mapping[str, Any]) -> None:
        """Makes this the report that `document` holds."""
        self.document = document
        self.wall = document["wall"]
        programs = [
            ProgramTimes(
                item["name"], item["sdfg_digest"], item["static"], _calls(item["initial"]), _calls(item["run"])
            )
            for item in document["programs"]
        ]
        totals = {id(program): 0.0 if program.run is None else program.run.whole.total for program in programs}
        self.programs = tuple(sorted(programs, key=lambda program: (-totals[id(program)], program.name)))

    def shares(self) -> dict[str, float]:
        """
        Where the profile's seconds went: `conversion`, `SDFG`, `initial calls`, `outside gtstub`.

        Calls that ran at the same time count each; nothing is then said to be outside that may have been.
        """
        runs = [program.run for program in self.programs if program.run is not None]
        conversion, sdfg = sum(run.conversion.total for run in runs), sum(run.sdfg.total for run in runs)
        initial = sum(program.initial.whole.total for program in self.programs if program.initial is not None)
        outside = max(0.0, self.wall - conversion - sdfg - initial)
        return {"conversion": conversion, "SDFG": sdfg, "initial calls": initial, "outside gtstub": outside}

    def summary(self) -> str:
        """One line that says where the time went."""
        shares = (
            f"{name} {seconds / self.wall if self.wall > 0 else 0:.1%}" for name, seconds in self.shares().items()
        )
        return f"Of {duration(self.wall)}: {', '.join(shares)}."


def duration(seconds: float) -> str:
    """Three digits and a unit: `214 ns`, `2.15 ms`; from a minute on `03m02s`."""
    if seconds >= 59.95:
        return f"{round(seconds) // 60:02d}m{round(seconds) % 60:02d}s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{seconds * 1e9:.0f} ns"


def labels(programs: tuple[ProgramTimes, ...], suffix: str = "") -> list[str]:
    """
    A name for each, with a suffix. Variants of one program are told apart by those static arguments that are not the
    same in all of them, and where that is not enough by the SDFG.
    """
    made = []
    for program in programs:
        variants = [other.static for other in programs if other.name == program.name]
        differing = [
            f"{name}={value}"
            for name, value in program.static.items()
            if any(name not in other or other[name] != value for other in variants)
        ]
        made.append(f"{program.name}{suffix}" + (f" ({', '.join(differing)})" if differing else ""))
    return [
        f"{label} [{program.sdfg_digest[:8]}]" if made.count(label) > 1 else label
        for label, program in zip(made, programs, strict=True)
    ]


def _calls(item: Mapping[str, Any] | None) -> Calls | None:
    if item is None:
        return None
    conversion, sdfg, whole = (Times(**item[part]) for part in ("conversion", "sdfg", "whole"))
    return Calls(item["calls"], conversion, sdfg, whole)
