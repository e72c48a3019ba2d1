"""The command 'gtstub doctor'."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json, progress
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from gtstub.toolchain.doctor import Check


@click.command(epilog=example("gtstub doctor", "gtstub doctor --jq '.checks[] | select(.ok | not) | .advice'"))
@json_options
def doctor(as_json: Json | None) -> None:
    """
    Say what this machine has, what is missing, and how to get it.

    Exits with 1 when something is missing that gtstub cannot do without.
    """
    from gtstub.toolchain.doctor import checks

    with progress("Trying the compiler"):
        found = checks()
    is_well = all(check.ok for check in found)
    if as_json is not None:
        as_json.print({"ok": is_well, "checks": [dataclasses.asdict(check) for check in found]})
    else:
        _print(found)
    click.get_current_context().exit(0 if is_well else 1)


def _print(checks: Sequence[Check]) -> None:
    """A row for each check, and below the table what to do."""
    table = make_table("", "what", "found")
    for check in checks:
        table.add_row("ok" if check.ok else "MISSING", check.name, check.found)
    print_parts(table, "\n".join(f"{check.name}: {check.advice}" for check in checks if check.advice))
