"""The command 'gtstub record'."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from gtstub.cli.command import run_command
from gtstub.cli.options import FILE, example
from gtstub.errors import GtstubError
from gtstub.tools.recorded.archive import PROGRAMS, Archive, archive_paths, archives, loaded_programs
from gtstub.tools.recorded.serialbox import write_serialbox_files
from gtstub.util.atomic import make_directories
from gtstub.util.console import make_bar, make_console
from gtstub.util.suggest import did_you_mean


def _calls(text: str) -> str:
    found = re.fullmatch(r"([1-9]\d*)?(?:\.\.([1-9]\d*)?)?", text)
    if not text or found is None or (found[1] and found[2] and int(found[1]) > int(found[2])):
        raise click.BadParameter(f"'{text}' is not of the form 'N', 'N..M', 'N..' or '..M', counted from 1.")
    return text


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "gtstub record -o recording -- python model.py",
        "gtstub record -o recording --program diffuse --calls 1..10 -- mpirun -n 2 ./icon",
        "GTSTUB_RECORD=recording ./icon && gtstub record -o recording",
    ),
)
@click.option("-o", "--output", metavar="DIR", type=FILE, required=True, help="Where to put the recordings.")
@click.option("--program", "programs", metavar="NAME", multiple=True, help="Record only this program; repeatable.")
@click.option("--calls", metavar="N..M", type=_calls, help="Record only these calls of each program, from 1.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(output: Path, programs: tuple[str, ...], calls: str | None, command: tuple[str, ...]) -> None:
    """
    Run COMMAND and record all calls of its programs.

    Each process that calls programs, from Python, C or Fortran, writes the arguments before and after every call into
    its own directory, DIR/<host>-<number>. 'gtstub replay' repeats these calls, and serialbox can read them. Without
    COMMAND, recordings that were made with GTSTUB_RECORD=DIR become readable for serialbox.

    The exit code is that of COMMAND, or 1 if something could not be recorded. DIR must not contain any recordings.
    """
    status = 0
    if command:
        _prepare(output)
        status = _run(command, output, programs, calls)
    found = archives(output)
    with make_bar() as bar:
        task = bar.add_task("writing files for serialbox", total=len(found))
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
    """Makes the directory. Raises GtstubError if it has recordings, which replays and reports would include."""
    if archive_paths(output):
        raise GtstubError(f"'{output}' has recordings of another run: name another directory, or remove it.")
    try:
        make_directories(output)
        (output / PROGRAMS).unlink(missing_ok=True)
    except OSError as error:
        raise GtstubError(f"The directory '{output}' cannot be created: {error.strerror}.") from error


def _run(command: Sequence[str], output: Path, programs: Sequence[str], calls: str | None) -> int:
    console = make_console(stderr=True)
    if console.is_terminal:  # without a bar, which would disturb the output of the command
        console.print(f"Recording the calls of '{command[0]}' to '{output}'.", soft_wrap=True)
    settings = {
        "GTSTUB_RECORD": str(output.absolute()),
        "GTSTUB_RECORD_PROGRAMS": ",".join(programs),
        "GTSTUB_RECORD_CALLS": calls or "",
    }
    return run_command(command, settings)


def _say(found: Sequence[Archive], output: Path) -> None:
    if not found:
        click.echo(f"There are no recorded calls in '{output}'.", err=True)
    for archive in found:
        counts = ", ".join(
            f"'{program.id}' {sum(call.program is program for call in archive.calls)}" for program in archive.programs
        )
        note = "" if archive.is_complete else ". Later calls are missing; the process has reported the reason"
        click.echo(f"'{archive.path}' has the calls of {counts or 'no program'}{note}.", err=True)
