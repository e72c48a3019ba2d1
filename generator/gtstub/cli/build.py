"""The command 'gtstub build': a set of programs, ahead of time, or one stub."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from gtstub import settings
from gtstub.cache.store import open_cache
from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json
from gtstub.cli.stub import build_stub, force_option, output_directory
from gtstub.util.console import make_bar, make_console

if TYPE_CHECKING:
    from gtstub.building.outcome import Outcome
    from gtstub.building.pool import Progress


class _SetOptions(TypedDict):
    """The options of `gtstub build` that are for sets."""

    program: tuple[str, ...]
    jobs: int
    cache: Path | None
    dry_run: bool
    as_json: Json | None


def _set_options[F: Callable[..., Any]](command: F) -> F:
    for option in (
        json_options,
        click.option("--dry-run", is_flag=True, help="Build nothing; exit with 1 if something is missing."),
        click.option(
            "--cache",
            metavar="DIR",
            type=click.Path(path_type=Path),
            help="Where entries go.  [default: GTSTUB_CACHE_DIR, or beside gt4py's own cache if that is persistent]",
        ),
        click.option(
            "-j",
            "--jobs",
            metavar="N",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="How many processes build at a time.",
        ),
        click.option(
            "--program", metavar="NAME", multiple=True, help="Build this one of the set; may be given several times."
        ),
    ):
        command = option(command)
    return command


@click.command(
    epilog=example(
        "gtstub build programs.toml --jobs 4 --cache DIR",
        "gtstub build programs.toml --program relax --cache DIR",
        "gtstub build sdfg.json program.json --library build/libprogram.so -o stubs",
    )
)
@click.argument(
    "files", metavar="PROGRAMS.toml | SDFG.json PROGRAM.json", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@_set_options
@click.option("--library", metavar="LIB", type=click.Path(path_type=Path), help="The library DaCe built of the SDFG.")
@output_directory
@force_option
def build(
    files: tuple[Path, ...], library: Path | None, output: Path, force: bool, **of_set: Unpack[_SetOptions]
) -> None:
    """
    Build a set of programs ahead of time, or one stub.

    PROGRAMS.toml lists programs (docs/compile.md). All their variants are built, in parallel, into the cache, where
    'gtstub.compile()' finds them. Exits with 1 when one fails; the others are built all the same.

    Of two signatures and '--library', a stub is written and compiled: <name>_stub.h, <name>_stub.c and <name>_stub.so.
    The stub and the library can then be loaded together, from C with gts_load(), from Python with gtstub._host.load().
    """
    if len(files) == 1 and files[0].suffix == ".toml":
        _build_set(files[0], **of_set)
    elif len(files) == 2 and library is not None:
        if of_set["program"]:
            raise click.UsageError("'--program' is for a set of programs; two signatures are those of one.")
        build_stub(files[0], files[1], library, output, force)
    else:
        raise click.UsageError("Give one file in TOML, or two signatures and '--library'.")


def _build_set(
    file: Path,
    program: tuple[str, ...],
    jobs: int,
    cache: Path | None,
    dry_run: bool,
    as_json: Json | None,
) -> None:
    """Builds what `file` lists, with progress on stderr; prints a summary, and exits with 1 when something failed."""
    from gtstub.building import pool
    from gtstub.building.jobs import longest_first, read_jobs, select
    from gtstub.building.outcome import print_summary
    from gtstub.frameworks import build_worker

    if cache is not None:
        os.environ[settings.CACHE_DIR] = str(cache.absolute())
    is_named = settings.cache_dir() is not None
    if not is_named and os.environ.get("GT4PY_BUILD_CACHE_LIFETIME", "").lower() != "persistent":
        raise click.UsageError(
            f"Say where entries go, with '--cache' or {settings.CACHE_DIR}: gt4py's cache would end with this run."
        )
    try:
        wanted = select(read_jobs(file), program)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--program'") from None
    if is_named:
        wanted = longest_first(wanted, open_cache())
    outcomes = list(_watched(pool.run(wanted, jobs, build_worker.outcome, dry_run), len(wanted)))
    if as_json is not None:
        as_json.print({"programs": [dataclasses.asdict(outcome) for outcome in outcomes]})
    else:
        print_summary(outcomes, make_console())
    is_well = all(outcome.state in ("built", "found") for outcome in outcomes)
    click.get_current_context().exit(0 if is_well else 1)


def _watched(progress: Iterator[Progress], count: int) -> Iterator[Outcome]:
    """The outcomes; says on stderr what is being built: on a terminal a bar, else a line when something is done."""
    with make_bar() as bar:
        console = bar.console
        task = bar.add_task("", total=count)
        running: list[str] = []
        done = 0
        for event in progress:
            if event.outcome is None:
                running.append(event.job.label)
            else:
                running.remove(event.job.label)
                done += 1
                if not console.is_terminal:
                    what = f"{event.outcome.state} in {event.outcome.seconds:.1f} s"
                    console.print(f"{done}/{count} {event.job.label}: {what}", soft_wrap=True)
                yield event.outcome
            bar.update(task, completed=done, description=", ".join(running))
