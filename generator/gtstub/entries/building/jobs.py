"""Reads the TOML file that lists programs to build ahead of time (docs/compile.md)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.entries.building.outcome import Outcome
from gtstub.errors import CacheError
from gtstub.util.suggest import did_you_mean
from gtstub.util.toml import Places, read_toml

if TYPE_CHECKING:
    from gtstub.entries.cache.store import Cache

KINDS = {"text": str, "a table": dict, "true or false": bool}

MEMBERS = {
    "source": "text",
    "grid": "text",
    "backend_tag": "text",
    "horizontal_sizes": "a table",
    "vertical_sizes": "a table",
    "bound_static_args": "a table",
    "static_args": "a table",
    "static_horizontal_sizes": "true or false",
}
"""The settings of a [[program]] table. All of them except `source` may also appear in [default]."""


@dataclasses.dataclass(frozen=True)
class Job:
    """
    One variant of a program. `arguments` are arguments of `gtstub.compile()` with the values of the file; the list of
    each static argument has one element. `grid` names the function that makes the offset provider, or is empty. `lines`
    are lines of `file`: of the program, under the empty text, and of the names that an error may quote.
    """

    source: str
    grid: str
    arguments: Mapping[str, Any]
    file: Path = Path()
    lines: Mapping[str, int] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def label(self) -> str:
        return f"{self.program} ({self.variant})" if self.variant else self.program

    def where(self, error: str) -> str:
        """The file, and the line of the name that `error` quotes, or else of the program."""
        line = next((line for name, line in self.lines.items() if f"'{name}'" in error), self.lines.get(""))
        return f"'{self.file}', line {line}"

    @property
    def program(self) -> str:
        return self.source.partition(":")[2].rpartition(".")[2]

    @property
    def variant(self) -> str:
        return ", ".join(f"{name}={values[0]}" for name, values in self.arguments.get("static_args", {}).items())


def read_jobs(file: Path) -> list[Job]:
    """All variants of all programs. Raises ConfigError with the line of a mistake, or OSError."""
    data, places = read_toml(file)
    for name in data:
        places.refuse_unknown((name,), "table", ("default", "program"))
    default = _members(("default",), places.table(("default",), data.get("default", {})), places)
    if "source" in default:
        raise places.refusal(("default", "source"), "'source' belongs to a program: write it below [[program]].")
    programs = data.get("program", [])
    if not isinstance(programs, list) or not all(isinstance(program, dict) for program in programs):
        raise places.refusal(("program",), "Programs are tables of an array: write [[program]], not [program].")
    return [job for number, program in enumerate(programs) for job in _jobs(number, program, default, places)]


def select(jobs: Sequence[Job], names: Sequence[str]) -> list[Job]:
    """The variants of these programs, or of all programs if `names` is empty. Raises ValueError for an unknown name."""
    known = list(dict.fromkeys(job.program for job in jobs))
    for name in names:
        if name not in known:
            raise ValueError(f"There is no program '{name}'.{did_you_mean(name, known)}")
    return [job for job in jobs if not names or job.program in names]


def failed(job: Job, error: str, seconds: float = 0.0, key: str = "") -> Outcome:
    message = f"{job.where(error)}: Program '{job.label}' could not be built: {error.removesuffix('.')}."
    return Outcome(job.program, job.variant, "failed", seconds, key, message)


def longest_first(cache: Cache, sized: Sequence[tuple[Job, int]]) -> list[Job]:
    """
    Sorts jobs by the time that their builds will take, longest first: the longest time of an earlier build of the
    program, or else one in proportion to the size of the lowered program.
    """
    seconds: dict[str, float] = {}
    for entry in cache.entries():
        with suppress(CacheError):
            manifest = entry.manifest()
            seconds[manifest.name] = max(manifest.built.whole, seconds.get(manifest.name, 0.0))
    # The programs that have both a time and a size say how many seconds a size takes. Without one, sizes alone count.
    both = [(seconds[job.program], size) for job, size in sized if job.program in seconds]
    rate = sum(time for time, _ in both) / max(1, sum(size for _, size in both)) if both else 1.0
    expected = [(seconds.get(job.program, size * rate), job) for job, size in sized]
    return [job for _, job in sorted(expected, key=lambda each: each[0], reverse=True)]


def _jobs(number: int, program: Mapping[str, Any], default: Mapping[str, Any], places: Places) -> Iterator[Job]:
    path = ("program", str(number))
    members = {**default, **_members(path, program, places)}
    if "source" not in members:
        raise places.refusal(path, "A program needs its 'source', as \"module:name\".")
    source, grid = members.pop("source"), members.pop("grid", "")
    choices: Mapping[str, Any] = members.get("static_args", {})
    for name, values in choices.items():
        if not isinstance(values, list) or not values:
            where = (*path, "static_args", name) if "static_args" in program else ("default", "static_args", name)
            raise places.refusal(where, f"Static argument '{name}' needs a list of values, but is {values!r}.")
    lines = _lines(path, members, grid, places)
    for values in itertools.product(*choices.values()):
        static = {name: [value] for name, value in zip(choices, values, strict=True)}
        yield Job(source, grid, members | ({"static_args": static} if static else {}), places.file, lines)


def _lines(path: tuple[str, ...], members: Mapping[str, Any], grid: str, places: Places) -> dict[str, int]:
    """The lines of `Job`: those of arguments, and of the modules that settings name."""

    def line(*setting: str) -> int:
        return places.lines.get((*path, *setting)) or places.lines[("default", *setting)]

    lines = {"": line("source")} | ({grid.partition(":")[0]: line("grid")} if grid else {})
    for name, table in members.items():
        for argument, value in table.items() if isinstance(table, dict) else ():
            lines[argument] = line(name, argument)
            if isinstance(value, str):
                lines[value.partition(":")[0]] = line(name, argument)
    return lines


def _members(path: tuple[str, ...], table: Mapping[str, Any], places: Places) -> dict[str, Any]:
    for name, value in table.items():
        here = (*path, name)
        places.refuse_unknown(here, "setting", list(MEMBERS))
        kind = MEMBERS[name]
        if not isinstance(value, KINDS[kind]):
            raise places.refusal(here, f"'{name}' must be {kind}, but is {value!r}.")
        if (name == "source" or (name == "grid" and value)) and not all(str(value).partition(":")):
            raise places.refusal(here, f'\'{name}\' must be "module:name", but is "{value}".')
    return dict(table)
