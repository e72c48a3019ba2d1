"""
Which backend compiles a program, and with which options: a tag, and what tables in TOML say of it (docs/backends.md).

The most specific section wins, in whatever file it stands; between sections that are as specific as each other, the
later file. The backend of gtstub takes the options of DaCe's as well; where one section says both, its own win.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, cast, get_args

from gtstub.errors import ConfigError
from gtstub.toolchain.arch import GPU_PREFIXES, Device
from gtstub.util.toml import Places, did_you_mean, read_toml

type Backend = Literal["gtfn", "dace", "gtstub"]

BACKENDS: tuple[Backend, ...] = get_args(Backend.__value__)

DEVICES = ("cpu", "gpu", "cuda", "rocm")
"""What a section can be for. 'cuda' and 'rocm' are GPUs, and more specific than 'gpu'."""

type Gpu = Literal["cuda", "rocm"]

DEFAULT = "default"
"""As value of an option: as if no table named it."""


class Tag(StrEnum):
    """What users ask for. For CPU and GPU a table decides which backend that is."""

    CPU = "CPU"
    GPU = "GPU"
    GTFN_CPU = "GTFN_CPU"
    GTFN_GPU = "GTFN_GPU"
    DACE_CPU = "DACE_CPU"
    DACE_GPU = "DACE_GPU"
    GTSTUB_CPU = "GTSTUB_CPU"
    GTSTUB_GPU = "GTSTUB_GPU"

    @classmethod
    def _missing_(cls, value: object) -> Tag:
        raise ConfigError(f"There is no backend tag '{value}'.{did_you_mean(str(value), list(Tag))}")

    @property
    def backend(self) -> Backend | None:
        """The backend that the tag names; None where a table decides."""
        name, _, device = self.lower().partition("_")
        return cast(Backend, name) if device else None

    @property
    def device(self) -> Device:
        return "cpu" if self.endswith("CPU") else "gpu"


EMBEDDED = "EMBEDDED"
"""In the place of a tag where no backend is: gt4py runs the program in Python."""


@dataclasses.dataclass(frozen=True)
class Section:
    """What a part of a table is for; None stands for all. At most one of `device` and `arch` is given."""

    program: str | None = None
    device: str | None = None
    arch: str | None = None

    def __str__(self) -> str:
        """As the file has it in brackets."""
        parts = [f"{name}.{value}" for name, value in vars(self).items() if value is not None]
        return ".".join(parts) or "default"

    def applies(self, program: str, devices: Sequence[str], arch: str) -> bool:
        return self.program in (None, program) and self.device in (None, *devices) and self.arch in (None, arch or None)

    @property
    def specificity(self) -> tuple[bool, int]:
        """The greater wins. One program on any machine is more specific than any program on one machine."""
        of_device = {None: 0, "cpu": 1, "gpu": 1, "cuda": 2, "rocm": 2}[self.device]
        return self.program is not None, 3 if self.arch is not None else of_device


@dataclasses.dataclass(frozen=True)
class Setting:
    """One line of a table: ('backend',), or an option as (backend, name, ...)."""

    section: Section
    path: tuple[str, ...]
    value: Any
    file: Path
    line: int

    @property
    def option(self) -> str:
        """As the file has it."""
        return ".".join(self.path)


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why an option has its value: the setting that decided, and the reason that held before it."""

    setting: Setting
    overrode: Reason | None = None


@dataclasses.dataclass(frozen=True)
class Choice:
    """What compiles `program`. `options` are those of the backend, nested as in the table; each has a reason."""

    program: str
    tag: Tag
    arch: str
    backend: Backend
    device: Device
    options: Mapping[str, Any]
    reasons: tuple[Reason, ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """A file of settings, in the order of the file."""

    file: Path
    settings: tuple[Setting, ...]


# --- Choosing ---------------------------------------------------------------------------------------------------------


def choose(program: str, tag: Tag | str, arch: str, tables: Sequence[Table], gpu: Gpu | None = None) -> Choice:
    """
    The backend of `program` and its options. `arch` names the device that `tag` means, and may be empty if unknown;
    `gpu` says what kind of GPU it is where `arch` does not.

    Raises ConfigError for an unknown tag, for an architecture of another device than the tag's, if no table says what
    CPU or GPU means, and if tables contradict each other.
    """
    tag = Tag(tag)
    device = gpu if gpu and tag.device == "gpu" else tag.device
    if arch and not _is_of(arch, device):
        raise ConfigError(
            f"Program '{program}' with tag '{tag}' runs on {_MACHINES[device]}, but the architecture is '{arch}'."
        )
    devices = _devices(tag.device, arch, gpu)
    ranked = sorted(
        (
            ((setting.section.specificity, number, setting.path[0] == "gtstub"), setting)
            for number, table in enumerate(tables)
            for setting in table.settings
            if setting.section.applies(program, devices, arch)
        ),
        key=itemgetter(0),
    )
    decided: dict[tuple[str, ...], Reason] = {}
    for _, setting in ranked:
        if setting.path == ("backend",) and tag.backend is None:
            _decide(decided, setting.path, setting)
    if tag.backend is None and not decided:
        raise ConfigError(f"No table says which backend tag '{tag}' means for program '{program}'.")
    backend = tag.backend or cast(Backend, decided["backend",].setting.value)
    options: dict[tuple[str, ...], Reason] = {}
    for _, setting in ranked:
        if setting.path[0] == backend or (setting.path[0] == "dace" and backend == "gtstub"):
            _decide(options, setting.path[1:], setting)
    reasons = (*decided.values(), *(options[path] for path in sorted(options)))
    return Choice(program, tag, arch, backend, tag.device, _nested(options), reasons)


_MACHINES = {
    "cpu": "a CPU, as 'zen4'",
    "gpu": "a GPU, as 'sm_90' or 'gfx90a'",
    "cuda": "a GPU of CUDA, as 'sm_90'",
    "rocm": "a GPU of ROCm, as 'gfx90a'",
}


def _is_of(arch: str, device: str) -> bool:
    if device == "cpu":
        return not arch.startswith(GPU_PREFIXES)
    return arch.startswith(GPU_PREFIXES if device == "gpu" else {"cuda": "sm_", "rocm": "gfx"}[device])


def _devices(device: Device, arch: str, gpu: Gpu | None) -> tuple[str, ...]:
    """A GPU that nothing is known of counts as one of CUDA, as in gt4py."""
    return (device,) if device == "cpu" else (device, gpu or ("rocm" if arch.startswith("gfx") else "cuda"))


def _decide(decided: dict[tuple[str, ...], Reason], path: tuple[str, ...], setting: Setting) -> None:
    for other, reason in decided.items():
        if len(other) != len(path) and all(mine == theirs for mine, theirs in zip(path, other, strict=False)):
            table, value = (reason.setting, setting) if len(other) > len(path) else (setting, reason.setting)
            raise ConfigError(f"{at(value)}: '{value.option}' is a table in {at(table)}.")
    decided[path] = Reason(setting, decided.get(path))


def _nested(decided: Mapping[tuple[str, ...], Reason]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for path, reason in decided.items():
        if reason.setting.value == DEFAULT:
            continue
        table = options
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = reason.setting.value
    return options


# --- Reading ----------------------------------------------------------------------------------------------------------


def sources() -> tuple[tuple[str, Path], ...]:
    """Where tables are looked for, the later ones winning: who speaks there, and the file."""
    import platformdirs  # Here, because it takes long to import, and the command line imports this.

    user = platformdirs.user_config_path("gtstub") / "backends.toml"
    named = filter(None, os.environ.get("GTSTUB_BACKENDS", "").split(os.pathsep))
    return (
        ("gtstub", Path(__file__).with_name("backends.toml")),
        ("user", user),
        *(("GTSTUB_BACKENDS", Path(file)) for file in named),
    )


def load_tables() -> tuple[Table, ...]:
    """The tables of `sources()`. Only the user's file may be missing: else OSError. ConfigError if one is malformed."""
    return tuple(read_table(file) for who, file in sources() if who != "user" or file.exists())


def read_table(file: Path) -> Table:
    data, places = read_toml(file)
    return Table(file, tuple(_settings(data, places)))


def _settings(data: Mapping[str, Any], places: Places) -> Iterator[Setting]:
    for kind, value in data.items():
        places.refuse_unknown((kind,), "section", ("default", "device", "arch", "program"))
        content = places.table((kind,), value)
        if kind == "default":
            yield from _section(Section(), (kind,), content, places)
        elif kind == "program":
            for program, parts in content.items():
                path = (kind, program)
                own = dict(places.table(path, parts))
                machines = {name: own.pop(name) for name in ("device", "arch") if name in own}
                yield from _section(Section(program), path, own, places)
                for name, machine in machines.items():
                    yield from _machines(program, (*path, name), machine, places)
        else:
            yield from _machines(None, (kind,), content, places)


def _machines(program: str | None, path: tuple[str, ...], value: Any, places: Places) -> Iterator[Setting]:
    """What is said of each device, or of each architecture."""
    for name, content in places.table(path, value).items():
        if path[-1] == "device":
            places.refuse_unknown((*path, name), "device", DEVICES)
            section = Section(program, device=name)
        else:
            section = Section(program, arch=name)
        yield from _section(section, (*path, name), places.table((*path, name), content), places)


def _section(section: Section, path: tuple[str, ...], content: Mapping[str, Any], places: Places) -> Iterator[Setting]:
    for key, value in content.items():
        here = (*path, key)
        places.refuse_unknown(here, "setting", ("backend", *BACKENDS))
        if key != "backend":
            places.table(here, value)
        elif value not in BACKENDS:
            raise places.refusal(here, f"There is no backend {value!r}.{did_you_mean(str(value), BACKENDS)}")
        for leaf, leaf_value in _leaves((key,), value):
            if isinstance(leaf_value, date | time):
                raise places.refusal((*path, *leaf), f"'{'.'.join(leaf)}' must not be a date or a time.")
            yield Setting(section, leaf, leaf_value, places.file, places.lines[(*path, *leaf)])


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, element in value.items():
            yield from _leaves((*path, name), element)
    else:
        yield path, value


# --- Wording ----------------------------------------------------------------------------------------------------------


def at(setting: Setting) -> str:
    return f"'{setting.file}', line {setting.line}"
