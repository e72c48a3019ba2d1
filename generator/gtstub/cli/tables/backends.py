"""The output of 'gtstub config': choices, tables of backends, and the DaCe configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gtstub.frameworks.backends.choice import Choice
from gtstub.frameworks.backends.tables import Setting, Table
from gtstub.util.console import make_table, print_parts


def print_choice(choice: Choice, sources: Sequence[tuple[str, Path]], note: str) -> None:
    """Prints a program's backend, a row for each option with the lines that set it, the files, and `note`."""
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
    """Prints the files of tables of backends, whether they exist or not, and their settings in the same order."""
    names = _short_names(sources)
    rows = ((names[file], str(file), "" if file.exists() else "missing") for _, file in sources)
    files = make_table("table", "file", "", rows=rows)
    settings = make_table("line", "section", "option", "value")
    for setting in (setting for table in tables for setting in table.settings):
        line = f"{names[setting.file]}:{setting.line}"
        settings.add_row(line, f"[{setting.section}]", setting.option, json.dumps(setting.value))
    print_parts(files, settings)


def print_dace_config(file: Path, settings: Sequence[tuple[str, Any, str]]) -> None:
    """Prints names, values and origins of settings: those of others first, then gtstub's, then DaCe's defaults."""
    ordered = sorted(settings, key=lambda row: (row[2] == "DaCe", row[2] == "gtstub", row[0]))
    rows = ((name, json.dumps(value), by) for name, value, by in ordered)
    print_parts(f"gtstub: {file}", make_table("setting", "value", "decided by", rows=rows))


def _short_names(sources: Sequence[tuple[str, Path]]) -> dict[Path, str]:
    """The names of tables: 'gtstub', 'user', or the path of a table that the environment names."""
    return {file: origin if origin in ("gtstub", "user") else str(file) for origin, file in sources}
