"""The commands 'gtstub trace' and 'gtstub trace merge'."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import override

import click

from gtstub.cli.command import run_command
from gtstub.cli.options import FILE, example
from gtstub.settings import TRACE, TRACE_EVENTS

VIEWERS = "https://ui.perfetto.dev, or without internet in chrome://tracing"


@dataclass(frozen=True)
class _Settings:
    output: Path
    events: int | None


class _Runner(click.Group):
    """A group that runs what is not the name of one of its commands."""

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args) if args[0] in self.commands else ("run", _run, args)


@click.group(
    cls=_Runner,
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "gtstub trace -- python model.py",
        "gtstub trace -o run.json -- mpirun -n 2 ./icon && gtstub trace merge run-0.json run-1.json -o run.json",
    ),
    options_metavar="[OPTIONS] -- COMMAND...",
    subcommand_metavar="| merge FILES...",
)
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, default="trace.json", show_default=True, help="The file to write."
)
@click.option("--events", metavar="N", type=click.IntRange(1), help="Keep the newest N events; 262144 by default.")
@click.pass_context
def trace(context: click.Context, output: Path, events: int | None) -> None:
    """
    Run COMMAND and write a timeline of its calls.

    It also has steps, builds, loads and waits (docs/trace.md). A process that calls programs, from Python, C or
    Fortran, writes FILE when it ends. Each rank of a parallel run writes a file of its own, such as 'trace-3.json'. The
    exit code is that of COMMAND, or 1 if no file was written.
    """
    context.obj = _Settings(output, events)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def _run(settings: _Settings, command: Sequence[str]) -> None:
    variables = {TRACE: str(settings.output.absolute())}
    if settings.events is not None:
        variables[TRACE_EVENTS] = str(settings.events)
    before = _times(settings.output)
    status = run_command(command, variables)
    written = [path for path, time in sorted(_times(settings.output).items()) if before.get(path) != time]
    click.echo(_said(written), err=True)
    click.get_current_context().exit(status or (0 if written else 1))


@trace.command(epilog=example("gtstub trace merge trace-0.json trace-1.json -o trace.json"))
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", metavar="FILE", type=FILE, required=True, help="The file to write.")
def merge(files: tuple[Path, ...], output: Path) -> None:
    """
    Make one timeline of those of several processes.

    Each process is a track of its own, in the order of the ranks. Their clocks are aligned by the time of day.
    """
    from gtstub.tools.tracing.merge import merge as merge_files

    merge_files(files, output)
    click.echo(f"'{output}' was written: open it in {VIEWERS}.", err=True)


def _times(output: Path) -> dict[Path, int]:
    """When the files that a run may write were written last."""
    stem, suffix = (output.name, "") if output.suffix == "" else (output.stem, output.suffix)
    name = re.compile(re.escape(stem).replace("%p", "[0-9]+") + r"(-[0-9]+)?" + re.escape(suffix))
    folder = output.parent
    found = [path for path in folder.iterdir() if name.fullmatch(path.name)] if folder.is_dir() else []
    return {path: path.stat().st_mtime_ns for path in found}


def _said(written: Sequence[Path]) -> str:
    if not written:
        return "No timeline was written: no program was loaded, or a signal has ended the process."
    if len(written) == 1:
        return f"'{written[0]}' was written: open it in {VIEWERS}."
    files = shlex.join(map(str, written))
    return f"{len(written)} files were written. To open them together: gtstub trace merge {files} -o merged.json"
