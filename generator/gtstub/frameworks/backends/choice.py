"""
Chooses the backend of a program and its options from a tag and from tables in TOML (docs/backends.md).

The most specific section wins, regardless of its file; among equally specific sections, the later file wins. gtstub's
backend also takes the options of DaCe's backend; if one section sets both, gtstub's option wins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, cast

from gtstub.entries.toolchain.arch import GPU_PREFIXES, Device
from gtstub.errors import ConfigError
from gtstub.frameworks.backends.tables import Backend, Setting, Table
from gtstub.util.suggest import did_you_mean

type Gpu = Literal["cuda", "rocm"]

DEFAULT = "default"
"""An option with this value counts as not set."""


class Tag(StrEnum):
    """The choice of a user. For CPU and GPU a table names the backend."""

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
        """The backend that the tag names; None if a table decides."""
        name, _, device = self.lower().partition("_")
        return cast(Backend, name) if device else None

    @property
    def device(self) -> Device:
        return "cpu" if self.endswith("CPU") else "gpu"


EMBEDDED = "EMBEDDED"
"""Replaces a tag if there is no backend: gt4py runs the program in Python."""


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why an option has its value: the setting that decided, and the reason that it overrode."""

    setting: Setting
    overrode: Reason | None = None


@dataclasses.dataclass(frozen=True)
class Choice:
    """The backend of `program` with its options, which are nested as in the table; each option has a reason."""

    program: str
    tag: Tag
    arch: str
    backend: Backend
    device: Device
    options: Mapping[str, Any]
    reasons: tuple[Reason, ...]


def choose(program: str, tag: Tag | str, arch: str, tables: Sequence[Table], gpu: Gpu | None = None) -> Choice:
    """
    The backend of `program` and its options. `arch` is the architecture of the tag's device, empty if unknown; `gpu` is
    the kind of GPU, for an unknown `arch`.

    Raises ConfigError for an unknown tag, for an architecture of another device than the tag's, if no table names the
    backend of CPU or GPU, and if tables contradict each other.
    """
    tag = Tag(tag)
    device = gpu if gpu and tag.device == "gpu" else tag.device
    if arch and not _is_of(arch, device):
        raise ConfigError(
            f"Program '{program}' with tag '{tag}' runs on {_MACHINES[device]}, but the architecture is '{arch}'."
        )
    devices = _devices(tag.device, arch, gpu)
    applicable = (
        setting
        for table in tables
        for setting in sorted(table.settings, key=lambda setting: setting.path[0] == "gtstub")
        if setting.section.applies(program, devices, arch)
    )
    ranked = sorted(applicable, key=lambda setting: setting.section.specificity)  # otherwise in the order of the files
    decided: dict[tuple[str, ...], Reason] = {}
    for setting in ranked:
        if setting.path == ("backend",) and tag.backend is None:
            _decide(decided, setting.path, setting)
    if tag.backend is None and not decided:
        raise ConfigError(f"No table names the backend of tag '{tag}' for program '{program}'.")
    backend = tag.backend or cast(Backend, decided["backend",].setting.value)
    options: dict[tuple[str, ...], Reason] = {}
    for setting in ranked:
        if setting.path[0] == backend or (setting.path[0] == "dace" and backend == "gtstub"):
            _decide(options, setting.path[1:], setting)
    reasons = (*decided.values(), *(options[path] for path in sorted(options)))
    values = ((path, value) for path, reason in options.items() if (value := reason.setting.value) != DEFAULT)
    return Choice(program, tag, arch, backend, tag.device, nested(values), reasons)


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
    """The devices of applicable sections. An unknown GPU counts as one of CUDA, as in gt4py."""
    return (device,) if device == "cpu" else (device, gpu or ("rocm" if arch.startswith("gfx") else "cuda"))


def _decide(decided: dict[tuple[str, ...], Reason], path: tuple[str, ...], setting: Setting) -> None:
    for other, reason in decided.items():
        if len(other) != len(path) and all(mine == theirs for mine, theirs in zip(path, other, strict=False)):
            table, value = (reason.setting, setting) if len(other) > len(path) else (setting, reason.setting)
            raise ConfigError(f"{value.place}: '{value.option}' is a table in {table.place}.")
    decided[path] = Reason(setting, decided.get(path))


def nested(values: Iterable[tuple[Sequence[str], Any]]) -> dict[str, Any]:
    """Nested tables of values, each given with its path."""
    tables: dict[str, Any] = {}
    for (*names, last), value in values:
        table = tables
        for name in names:
            table = table.setdefault(name, {})
        table[last] = value
    return tables
