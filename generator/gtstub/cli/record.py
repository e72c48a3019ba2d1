"""The command 'gtstub record'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gtstub.cli.options import example
from gtstub.errors import GtstubError
from gtstub.util.console import make_bar, make_error_console
from gtstub.util.suggest import did_you_mean

if TYPE_CHECKING:
    from gtstub.recorded.archive import Archive

_file = click.Path(path_type=Path)


def _calls(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    found = None if text is None else re.fullmatch(r"([1-9]\d*)?(?:(\.\.)([1-9]\d*)?)?", text)
    if text is None or (found is not None and text and not (found[1] and found[3] and int(found[1]) > int(found[3]))):
        return text
    raise click.BadParameter(f"'{text}' is not of the form 'N', 'N..M', 'N..' or '..M', counted from 1.")


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "gtstub record -o recording -- python model.py",
        "gtstub record -o recording --program diffuse --calls 1..10 -- mpirun -n 2 ./icon",
        "GTSTUB_RECORD=recording ./icon && gtstub record -o recording",
    ),
)
@click.option("-o", "--output", metavar="DIR", type=_file, required=True, help="Where the recordings are put.")
@click.option("--program", "programs", metavar="NAME", multiple=True, help="Record this program only; repeat for more.")
@click.option("--calls", metavar="N..M", callback=_calls, help="Record these calls of each program, from 1.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(output: Path, programs: tuple[str, ...], calls: str | None, command: tuple[str, ...]) -> None:
    """
    Run COMMAND and record all calls of its programs.

    Each process that calls programs, from Python, C or Fortran, puts the arguments before and after every call into a
    directory of its own, DIR/<host>-<number>. 'gtstub replay' makes these calls again, and serialbox can read them.
    Without COMMAND, recordings that were made with GTSTUB_RECORD=DIR are made readable for serialbox.

    Exits as COMMAND does, and with 1 where not all that was asked for could be recorded. DIR must have no recordings
    before.
    """
    from gtstub.recorded.archive import archives, loaded_programs
    from gtstub.recorded.serialbox import write_serialbox_files

    status = 0
    if command:
        _prepare(output)
        status = _run(command, output, programs, calls)
    found = archives(output)
    with make_bar() as bar:
        task = bar.add_task("making it readable for serialbox", total=len(found))
        for archive in found:
            write_serialbox_files(archive)
            bar.advance(task)
    loaded = loaded_programs(output)
    _say(found, output)
    missing = [name for name in programs if command and name not in loaded]
    for name in missing:
        click.echo(f"No program '{name}' was loaded.{did_you_mean(name, loaded) if loaded else ''}", err=True)
    if missing or not found or not all(archive.is_complete for archive in found):
        status = status or 1
    click.get_current_context().exit(status)


def _prepare(output: Path) -> None:
    """Makes the directory of one run: what is there of another one would be replayed, and reported, with it."""
    from gtstub.recorded.archive import PROGRAMS, archive_paths

    if archive_paths(output):
        raise GtstubError(f"'{output}' has recordings of another run; name another directory, or remove it.")
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / PROGRAMS).unlink(missing_ok=True)
    except OSError as error:
        raise GtstubError(f"Directory '{output}' cannot be made: {error.strerror}.") from error


def _run(command: Sequence[str], output: Path, programs: Sequence[str], calls: str | None) -> int:
    import os
    import subprocess

    console = make_error_console()
    if console.is_terminal:  # no bar: it would be in the way of what the command prints
        console.print(f"Recording to '{output}' what '{command[0]}' calls.", soft_wrap=True)
    settings = {
        "GTSTUB_RECORD": str(output.absolute()),
        "GTSTUB_RECORD_PROGRAMS": ",".join(programs),
        "GTSTUB_RECORD_CALLS": calls or "",
    }
    try:
        status = subprocess.run(command, env={**os.environ, **settings}, check=False).returncode
    except OSError as error:
        raise GtstubError(f"'{command[0]}' cannot be run: {error.strerror}.") from error
    return status if status >= 0 else 128 - status


def _say(found: Sequence[Archive], output: Path) -> None:
    if not found:
        click.echo(f"There are no recorded calls in '{output}'.", err=True)
    for archive in found:
        counts = ", ".join(
            f"'{program.id}' {sum(call.program is program for call in archive.calls)}" for program in archive.programs
        )
        note = "" if archive.is_complete else ", and not those after: the process said why"
        click.echo(f"'{archive.path}' has the calls of {counts or 'no program'}{note}.", err=True)
