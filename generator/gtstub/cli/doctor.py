"""The command 'gtstub doctor'."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gtstub.cli.options import example, json_options
from gtstub.cli.output import Answer, progress
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from gtstub.toolchain.doctor import Check


@click.command(epilog=example("gtstub doctor", "gtstub doctor --jq '.checks[] | select(.ok | not) | .advice'"))
@json_options
def doctor() -> Answer:
    """
    Check the software of this machine, and print advice.

    The exit code is 1 if something is missing that gtstub needs.
    """
    from gtstub.toolchain.doctor import checks

    with progress("Trying the compiler"):
        found = checks()
    is_well = all(check.ok for check in found)
    document = {"ok": is_well, "checks": [dataclasses.asdict(check) for check in found]}
    return Answer(document, functools.partial(_print, found), 0 if is_well else 1)


def _state(check: Check) -> str:
    if not check.ok:
        return "MISSING"
    return "optional" if check.advice else "ok"


def _print(checks: Sequence[Check]) -> None:
    """Prints a row for each check, and the advice below the table."""
    rows = ((_state(check), check.name, check.found) for check in checks)
    table = make_table("", "check", "found", rows=rows)
    print_parts(table, "\n".join(f"{check.name}: {check.advice}" for check in checks if check.advice))
