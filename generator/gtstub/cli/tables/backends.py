"""Tables of backends, choices and the DaCe configuration, as 'gtstub config' prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gtstub.backends.choice import Choice
from gtstub.backends.tables import Setting, Table
from gtstub.util.console import make_table, print_parts


def print_choice(choice: Choice, sources: Sequence[tuple[str, Path]], note: str) -> None:
    """
    What compiles a program, and a row for each option: its value, the line that decided it, what that overrode. `note`
    is the last line, if it is not empty.
    """
    table = make_table("option", "value", "decided by", "overrode")
    names = _short_names(sources)
    used: dict[Path, str] = {}

    def place(setting: Setting) -> str:
        used[setting.file] = names[setting.file]
        return f"{names[setting.file]}:{setting.line} [{setting.section}]"

    for reason in choice.reasons:
        setting, before = reason.setting, reason.overrode.setting if reason.overrode else None
        overrode = f"{json.dumps(before.value)}, {place(before)}" if before else ""
        table.add_row(setting.option, json.dumps(setting.value), place(setting), overrode)
    machine = f"{choice.device} '{choice.arch}'" if choice.arch else f"unknown {choice.device}"
    files = "\n".join(f"{name}: {file}" for file, name in used.items())
    head = f"Program '{choice.program}', tag '{choice.tag}', {machine}: backend '{choice.backend}'."
    print_parts(head, table, files, note)


def print_tables(sources: Sequence[tuple[str, Path]], tables: Sequence[Table]) -> None:
    """Where tables of backends are looked for, and all that they say, in the order of the files."""
    names = _short_names(sources)
    files = make_table("table", "file", "")
    for _, file in sources:
        files.add_row(names[file], str(file), "" if file.exists() else "not there")
    settings = make_table("line", "section", "option", "value")
    for table in tables:
        for setting in table.settings:
            line = f"{names[setting.file]}:{setting.line}"
            settings.add_row(line, f"[{setting.section}]", setting.option, json.dumps(setting.value))
    print_parts(files, settings)


def print_dace_config(file: Path, settings: Sequence[tuple[str, Any, str]]) -> None:
    """The DaCe configuration, a row a setting: name, value, what decided it; what is not DaCe's default comes first."""
    table = make_table("setting", "value", "decided by")
    for name, value, by in sorted(settings, key=lambda row: (row[2] == "DaCe", row[2] == "gtstub", row[0])):
        table.add_row(name, json.dumps(value), by)
    print_parts(f"gtstub: {file}", table)


def _short_names(sources: Sequence[tuple[str, Path]]) -> dict[Path, str]:
    """A table is called by who speaks in it; one that the environment names, by its file."""
    return {file: who if who in ("gtstub", "user") else str(file) for who, file in sources}
