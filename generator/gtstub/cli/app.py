"""The command line. Whatever takes long to import is imported by the command that needs it."""

from __future__ import annotations

import dataclasses
import errno
from typing import Any

import click

from gtstub import __version__
from gtstub.cli.build import build
from gtstub.cli.cache import cache
from gtstub.cli.config import config
from gtstub.cli.options import example, json_options
from gtstub.cli.profile import profile
from gtstub.cli.record import record, replay
from gtstub.cli.report import print_checks, print_document, progress
from gtstub.cli.stub import extract, generate, plan, show
from gtstub.errors import GtstubError

EXIT_CODES = """
\b
Exit codes:
  0  done
  1  the answer is no ('generate --check', 'doctor', 'replay --compare'), or an error not listed below
  2  the command line or a jq filter is wrong
  3  a signature, an SDFG file, a profile or a recording is malformed
  4  the two signatures of a program contradict each other
  5  there is no C compiler, or it refused a stub
  6  a cache entry is missing or damaged
  7  a file cannot be read or written
  8  a table of backends is malformed, or names what there is not
"""


class _Group(click.Group):
    """Its commands say in one sentence on stderr why they fail, and exit as EXIT_CODES lists."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GtstubError as error:
            click.echo(str(error), err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            where = "" if error.filename is None else f" '{error.filename}'"
            click.echo(f"Cannot read or write{where}: {error.strerror}.", err=True)
            ctx.exit(7)


START = example("gtstub doctor", "gtstub build programs.toml --cache DIR", "gtstub show ENTRY", "gtstub COMMAND -h")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=f"{START}\n\n{EXIT_CODES}")
@click.version_option(__version__, message="gtstub %(version)s")
def main() -> None:
    """
    C call stubs for gt4py programs that DaCe compiles.

    A stub is generated from two JSON files, the SDFG signature and the program signature. They are in every cache entry
    ('sdfg.json', 'program.json'); 'gtstub extract' makes them from a program, or the first from an SDFG file.
    """


@main.command(epilog=example("gtstub doctor", "gtstub doctor --jq '.checks[] | select(.ok | not) | .advice'"))
@json_options
def doctor(as_json: bool, filter_: str | None) -> None:
    """
    Say what this machine has, what is missing, and how to get it.

    Exits with 1 when something is missing that gtstub cannot do without.
    """
    from gtstub.toolchain.doctor import checks

    with progress("Trying the compiler"):
        found = checks()
    is_well = all(check.ok for check in found)
    if as_json or filter_ is not None:
        print_document({"ok": is_well, "checks": [dataclasses.asdict(check) for check in found]}, filter_)
    else:
        print_checks(found)
    click.get_current_context().exit(0 if is_well else 1)


for command in (build, cache, config, extract, generate, plan, profile, record, replay, show):
    main.add_command(command)
