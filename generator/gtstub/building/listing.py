"""Writes the TOML file that lists programs to build ahead of time, from what a run has set up (docs/compile.md)."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub.util.atomic import replacing

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
    Writes a file that `gtstub.building.jobs.read_jobs` reads. Programs that cannot be listed are comments. Adds to a
    file that another process of the same run has written.
    """
    known = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = [known or "# The programs that one run has set up, written by 'gtstub build --from-run'.\n"]
    for program in sorted(programs, key=lambda each: (each.name, each.key)):
        if f"# {program.key}\n" in known:
            continue
        if program.why:
            parts.append(f"# Program '{program.name}' ({program.key}) is not listed: {program.why}.\n")
            continue
        lines = [f"# {program.key}", "[[program]]"]
        for name, value in program.settings.items():
            if isinstance(value, Mapping):
                lines.extend(f"{name}.{key} = {_toml(element)}" for key, element in value.items())
            else:
                lines.append(f"{name} = {_toml(value)}")
        parts.append("\n".join(lines) + "\n")
    with replacing(file) as aside:
        aside.write_text("\n".join(parts), encoding="utf-8")


def listed_keys(file: Path) -> list[str]:
    """The keys that the programs of a list had in the run."""
    return _KEY.findall(file.read_text(encoding="utf-8"))


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)
