"""The command 'gtstub build': builds a set of programs ahead of time, or one stub."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gtstub import settings
from gtstub.cli.command import run_command
from gtstub.cli.options import FILE, cache_option, example, force_option, json_options, output_option
from gtstub.cli.output import Answer
from gtstub.cli.stub import build_stub
from gtstub.entries.building.listing import listed_keys
from gtstub.entries.cache.store import open_cache
from gtstub.errors import GtstubError
from gtstub.util.console import make_bar, make_console

if TYPE_CHECKING:
    from gtstub.entries.building.outcome import Outcome
    from gtstub.entries.building.pool import Progress


@click.command(
    epilog=example(
        "gtstub build programs.toml --jobs 4 --cache DIR",
        "gtstub build programs.toml --program relax --cache DIR",
        "gtstub build --from-run programs.toml --grid my_model.grid:make -- python my_model.py",
        "gtstub build sdfg.json program.json --library build/libprogram.so -o stubs",
    )
)
@click.argument("given", metavar="PROGRAMS.toml | SDFG.json PROGRAM.json | COMMAND...", nargs=-1, required=True)
@click.option("--from-run", metavar="FILE", type=FILE, help="Run COMMAND in mode Build, and list its programs in FILE.")
@click.option("--grid", metavar="MODULE:NAME", default="", help="What makes the offset provider of listed programs.")
@click.option("--program", "names", metavar="NAME", multiple=True, help="Build only this program; repeatable.")
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(1), default=1, show_default=True, help="Builds at the same time."
)
@cache_option()
@click.option("--dry-run", is_flag=True, help="Build nothing; exit with 1 if something is missing.")
@click.option("--library", metavar="LIB", type=FILE, help="The library that DaCe built from the SDFG.")
@output_option
@force_option
@json_options
def build(
    given: tuple[str, ...],
    from_run: Path | None,
    grid: str,
    names: tuple[str, ...],
    jobs: int,
    cache: Path | None,
    dry_run: bool,
    library: Path | None,
    output: Path,
    force: bool,
) -> Answer:
    """
    Build a set of programs ahead of time, or one stub.

    PROGRAMS.toml lists programs (docs/compile.md). gtstub builds all their variants in parallel, and puts them into the
    cache, where 'gtstub.compile()' finds them. If one fails, gtstub builds the others and exits with 1.

    Two signatures and '--library' give one stub: <name>_stub.h, <name>_stub.c and the compiled <name>_stub.so. The stub
    and the library can then be loaded together, from C with gts_load(), from Python with gtstub._host.load().

    '--from-run' builds what a model needs: it runs the model in mode Build, until its time loop, and writes FILE, which
    lists the programs that the model has set up or called, for the next time.
    """
    if from_run is not None:
        _refuse_others_than("from_run", "grid", "cache", "as_json", "filter_")
        return _build_from_run(given, from_run, grid, cache)
    if grid:
        raise click.UsageError("'--grid' is for '--from-run'; programs of a file name their grids in it.")
    files = tuple(map(Path, given))
    if len(files) != 1 or files[0].suffix != ".toml":
        if len(files) != 2 or library is None:
            raise click.UsageError("Give one file in TOML, or two signatures and '--library'.")
        if names:
            raise click.UsageError("'--program' is for a set of programs; two signatures belong to one program.")
        build_stub(*files, library, output, force)
        click.get_current_context().exit()
    return _build_set(files[0], names, jobs, cache, dry_run)


def _build_from_run(command: Sequence[str], file: Path, grid: str, cache: Path | None) -> Answer:
    """
    Runs a command in mode Build, which writes `file`, and looks whether the list names the entries of the run. The exit
    code is that of the command, or 1 if it does not.
    """
    environment = {settings.MODE: "Build", settings.LIST_FILE: str(file.absolute()), settings.LIST_GRID: grid}
    if cache is not None:
        environment[settings.CACHE_DIR] = str(cache.absolute())
    file.unlink(missing_ok=True)
    exit_code = run_command(command, environment)
    if exit_code == 0 and not file.exists():
        raise GtstubError("The command has neither set up nor called a program with gtstub's backend.")
    document = {"file": str(file), "exit_code": exit_code, "others": list[str]()}
    if exit_code != 0:
        return Answer(document, lambda: None, exit_code)
    checked = _build_set(file, (), 1, cache, dry_run=True)
    others = sorted(set(listed_keys(file)) - {each["key"] for each in checked.document["programs"]})
    if not others:
        return Answer(document, lambda: None)

    def show() -> None:
        checked.show()  # An error, such as that of an import, is in its table.
        make_console(stderr=True).print(
            f"The list does not name these entries of the run: {', '.join(others)}. If there is no error above, their"
            " grid is not that of '--grid', or a table of backends is not in GTSTUB_BACKENDS.",
            style="red",
            soft_wrap=True,
        )

    return Answer({**document, "exit_code": 1, "others": others}, show, 1)


def _refuse_others_than(*names: str) -> None:
    """Raises a usage error for options of the command line that '--from-run' does not have."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and isinstance(parameter, click.Option) and parameter.name not in names:
            raise click.UsageError(f"'{parameter.opts[-1]}' cannot be given with '--from-run'.")


def _build_set(file: Path, names: Sequence[str], jobs: int, cache: Path | None, dry_run: bool) -> Answer:
    """Builds the programs that `file` lists, with progress on stderr."""
    from gtstub.entries.building import pool
    from gtstub.entries.building.jobs import longest_first, read_jobs, select
    from gtstub.entries.building.outcome import print_summary
    from gtstub.frameworks import build_worker

    if cache is not None:
        os.environ[settings.CACHE_DIR] = str(cache.absolute())
    if not dry_run:
        settings.check_builds()  # once, and not in each program
    try:
        wanted = select(read_jobs(file), names)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--program'") from None
    size, order = functools.partial(build_worker.size, dry=dry_run), functools.partial(longest_first, open_cache())
    outcomes = list(_watched(pool.run(wanted, jobs, size, order, build_worker.outcome), len(wanted)))
    is_well = all(outcome.state in ("built", "found") for outcome in outcomes)
    document = {"programs": [dataclasses.asdict(outcome) for outcome in outcomes]}
    return Answer(document, functools.partial(print_summary, outcomes, make_console()), 0 if is_well else 1)


def _watched(progress: Iterator[Progress], count: int) -> Iterator[Outcome]:
    """Yields outcomes, and shows on stderr a bar (on a terminal) or one line for each outcome (anywhere else)."""
    from gtstub.entries.building.progress import builds

    with make_bar() as bar:
        console = bar.console
        task = bar.add_task("", total=count)
        running, done = list[str](), 0
        for event in progress:
            if event.outcome is None:
                running.append(event.job.label)
            else:
                running.remove(event.job.label)
                done += 1
                builds.end(event.outcome.key)  # if something was heard of it
                if not console.is_terminal:
                    what = f"{event.outcome.state} in {event.outcome.seconds:.1f} s"
                    console.print(f"{done}/{count} {event.job.label}: {what}", soft_wrap=True)
                yield event.outcome
            bar.update(task, completed=done, description=", ".join(running))
