"""The data of a profile, and the shares of its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Times:
    """
    Seconds. The median comes from a histogram, with an error of up to 1.6 %; the others are exact, and rounded up to
    1 ns.
    """

    min: float
    median: float
    max: float
    total: float


@dataclass(frozen=True)
class Memory:
    """
    The arrays that the SDFG has taken from the pool (docs/memory.md) in all calls: how many, their bytes, and the
    seconds in which they were taken and given back.
    """

    arrays: int
    bytes: int
    time: float


@dataclass(frozen=True)
class Calls:
    """
    The successful calls of one program, and their times. `whole` is `conversion` plus `sdfg` of each call. `memory` is
    None if its SDFG has taken none from the pool.
    """

    calls: int
    conversion: Times
    sdfg: Times
    whole: Times
    memory: Memory | None = None


@dataclass(frozen=True)
class ProgramTimes:
    """
    One program, or one variant of it with the static arguments `static`. `initial` has the first call and the calls
    that initialised the SDFG's handle again, `run` all others; each is None if there were no such calls.
    """

    name: str
    sdfg_digest: str
    static: Mapping[str, bool | int | float]
    initial: Calls | None
    run: Calls | None

    @property
    def calls(self) -> int:
        return sum(part.calls for part in (self.initial, self.run) if part is not None)


@dataclass(frozen=True)
class PositionTimes:
    """
    What a step does at one of its positions: it starts a program, or calls a function (`kind`). `calls` is how often
    that has succeeded. `time` is that of the whole action; None if there were no such calls.
    """

    name: str
    kind: Literal["program", "function"]
    calls: int
    time: Times | None

    @property
    def total(self) -> float:
        """Seconds of all calls."""
        return 0.0 if self.time is None else self.time.total


@dataclass(frozen=True)
class StepTimes:
    """One step, or several that were made anew under the same name with the same actions."""

    name: str
    positions: tuple[PositionTimes, ...]

    @property
    def total(self) -> float:
        """Seconds of all positions."""
        return sum(position.total for position in self.positions)


class Profile:
    """
    The data of a profile, empty until the profile ends. The program with the greatest total of `run`, and the step with
    the greatest total, come first.
    """

    wall: float
    """Seconds from the start to the end of the profile."""
    programs: tuple[ProgramTimes, ...]
    steps: tuple[StepTimes, ...]
    """Empty if none has run. Their times contain those of the programs that they start."""

    document: Mapping[str, Any]
    """The JSON document (docs/formats.md)."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self.fill(document or {"schema": "gtstub/profile/1", "wall": 0.0, "programs": []})

    def fill(self, document: Mapping[str, Any]) -> None:
        """Replaces all data by those of `document`."""
        self.document = document
        self.wall = document["wall"]
        programs = (
            ProgramTimes(
                item["name"], item["sdfg_digest"], item["static"], _calls(item["initial"]), _calls(item["run"])
            )
            for item in document["programs"]
        )
        self.programs = tuple(sorted(programs, key=lambda one: (-(one.run.whole.total if one.run else 0.0), one.name)))
        steps = (
            StepTimes(item["name"], tuple(map(_position, item["positions"]))) for item in document.get("steps", ())
        )
        self.steps = tuple(sorted(steps, key=lambda one: (-one.total, one.name)))

    def shares(self) -> dict[str, float]:
        """
        The seconds of the profile by part: `conversion`, `SDFG`, `initial calls`, `outside gtstub`.

        Calls that ran at the same time count individually, so `outside gtstub` may be too small.
        """
        runs = [program.run for program in self.programs if program.run is not None]
        conversion, sdfg = sum(run.conversion.total for run in runs), sum(run.sdfg.total for run in runs)
        initial = sum(program.initial.whole.total for program in self.programs if program.initial is not None)
        outside = max(0.0, self.wall - conversion - sdfg - initial)
        return {"conversion": conversion, "SDFG": sdfg, "initial calls": initial, "outside gtstub": outside}

    def summary(self) -> str:
        """One line with the shares of the time."""
        shares = (f"{name} {percentage(seconds, self.wall)}" for name, seconds in self.shares().items())
        return f"Of {duration(self.wall)}: {', '.join(shares)}."


def percentage(part: float, whole: float) -> str:
    return f"{part / whole if whole > 0 else 0.0:.1%}"


def duration(seconds: float) -> str:
    """A duration with three digits and a unit (`214 ns`, `2.15 ms`), or as `03m02s` from one minute."""
    if seconds >= 59.95:
        return f"{round(seconds) // 60:02d}m{round(seconds) % 60:02d}s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{seconds * 1e9:.0f} ns"


def labels(programs: tuple[ProgramTimes, ...], suffix: str = "") -> list[str]:
    """
    The names of programs, each with the suffix. Variants of one program have in addition the static arguments in which
    they differ, and the beginning of the SDFG's digest if they still have equal names.
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


def _position(item: Mapping[str, Any]) -> PositionTimes:
    return PositionTimes(
        item["name"], item["kind"], item["calls"], None if item["time"] is None else Times(**item["time"])
    )


def _calls(item: Mapping[str, Any] | None) -> Calls | None:
    if item is None:
        return None
    conversion, sdfg, whole = (Times(**item[part]) for part in ("conversion", "sdfg", "whole"))
    memory = Memory(**item["memory"]) if "memory" in item else None
    return Calls(item["calls"], conversion, sdfg, whole, memory)
