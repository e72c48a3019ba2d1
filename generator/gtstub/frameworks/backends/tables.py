"""Reads the TOML tables of backends (docs/backends.md): settings for programs, devices and architectures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, Literal, get_args

from gtstub import settings
from gtstub.util.suggest import did_you_mean
from gtstub.util.toml import Places, read_toml

type Backend = Literal["gtfn", "dace", "gtstub"]

BACKENDS: tuple[Backend, ...] = get_args(Backend.__value__)

DEVICES = ("cpu", "gpu", "cuda", "rocm")
"""The devices of sections. 'cuda' and 'rocm' are more specific than 'gpu'."""


@dataclasses.dataclass(frozen=True)
class Section:
    """The scope of a part of a table; None means any. At most one of `device` and `arch` is set."""

    program: str | None = None
    device: str | None = None
    arch: str | None = None

    def __str__(self) -> str:
        """The name of the section in the file's brackets."""
        parts = [f"{name}.{value}" for name, value in vars(self).items() if value is not None]
        return ".".join(parts) or "default"

    def applies(self, program: str, devices: Sequence[str], arch: str) -> bool:
        return self.program in (None, program) and self.device in (None, *devices) and self.arch in (None, arch or None)

    @property
    def specificity(self) -> tuple[bool, int]:
        """The greater value wins. One program on any machine is more specific than any program on one machine."""
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
        """The name of the option in the file."""
        return ".".join(self.path)

    @property
    def place(self) -> str:
        """File and line for messages."""
        return f"'{self.file}', line {self.line}"


@dataclasses.dataclass(frozen=True)
class Table:
    """The settings of one file, in its order."""

    file: Path
    settings: tuple[Setting, ...]


OWN_FILE = Path(__file__).with_name("backends.toml")
"""gtstub's own table."""


def table_files() -> tuple[tuple[str, Path], ...]:
    """The files of tables, each with its origin: 'gtstub', 'user' or the environment variable. Later files win."""
    import platformdirs  # Here, because the import is slow, and the command line imports this module.

    return (
        ("gtstub", OWN_FILE),
        ("user", platformdirs.user_config_path("gtstub") / "backends.toml"),
        *((settings.BACKENDS, file) for file in settings.backend_tables()),
    )


def load_tables() -> tuple[Table, ...]:
    """
    The tables of `table_files()`.

    Raises OSError if a file other than the user's is missing, and ConfigError if one is malformed.
    """
    return tuple(read_table(file) for origin, file in table_files() if origin != "user" or file.exists())


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
    """The settings of the sections `device.NAME` or `arch.NAME`, depending on the last name of `path`."""
    kind = path[-1]
    for name, content in places.table(path, value).items():
        here = (*path, name)
        if kind == "device":
            places.refuse_unknown(here, "device", DEVICES)
        yield from _section(Section(program, **{kind: name}), here, places.table(here, content), places)


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
