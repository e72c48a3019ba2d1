"""Writes the TOML file that lists programs to build ahead of time, from what a run has set up (docs/compile.md)."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"^# (\S+)\n\[\[program\]\]", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Listed:
    """
    One variant of a program: the settings of its [[program]] table, with tuples as lists; or the reason `why` it cannot
    be listed.
    """

    name: str
    key: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    why: str = ""


def write_list(file: Path, programs: Sequence[Listed]) -> None:
    """
    Writes a file that `read_jobs` of jobs.py reads. Programs that cannot be listed are comments. Adds to a file that
    another process of the same run has written, or is writing.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o644), "a+", encoding="utf-8") as shared:  # others cannot write it
        with suppress(OSError):  # of a file system without locks
            fcntl.flock(shared, fcntl.LOCK_EX)
        shared.seek(0)
        known = shared.read()
        new = [
            _table(each) for each in sorted(programs, key=lambda each: (each.name, each.key)) if not _is_in(each, known)
        ]
        parts = [
            "" if known else "# The programs that one run has set up, written by 'gtstub build --from-run'.\n",
            *new,
        ]
        shared.write("\n".join(parts))


def _is_in(program: Listed, known: str) -> bool:
    return f"# {program.key}\n" in known or f" ({program.key}) is not listed: " in known


def _table(program: Listed) -> str:
    if program.why:
        return f"# Program '{program.name}' ({program.key}) is not listed: {' '.join(program.why.split())}.\n"
    lines = [f"# {program.key}", "[[program]]"]
    for name, value in program.settings.items():
        if isinstance(value, Mapping):
            lines.extend(f"{name}.{_toml_key(key)} = {_toml(element)}" for key, element in value.items())
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def listed_keys(file: Path) -> list[str]:
    """The keys that the programs of a list had in the run."""
    return _KEY.findall(file.read_text(encoding="utf-8"))


def _toml_key(name: str) -> str:
    """TOML has keys without quotes in ASCII, and Python has names in other letters."""
    return name if _BARE.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
