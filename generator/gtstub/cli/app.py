"""The command line, `gtstub`. Each command itself imports the modules that take long to import."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Any

import click

from gtstub._version import __version__
from gtstub.cli.build import build
from gtstub.cli.cache import cache
from gtstub.cli.check import check
from gtstub.cli.config import config
from gtstub.cli.debug import debug
from gtstub.cli.doctor import doctor
from gtstub.cli.extract import extract
from gtstub.cli.memory import memory
from gtstub.cli.options import example
from gtstub.cli.profile import profile
from gtstub.cli.record import record
from gtstub.cli.replay import replay
from gtstub.cli.report import report
from gtstub.cli.stub import generate, plan, show
from gtstub.errors import GtstubError
from gtstub.util.visible import visible

EXIT_CODES = """
\b
Exit codes:
  0  done
  1  the answer is no ('check', 'generate --check', 'doctor', 'replay --compare'), or any error not listed below
  2  the command line or a jq filter is wrong; 'check', 'memory' or 'report' cannot read an SDFG or entry
  3  a signature, an SDFG file, a profile or a recording is malformed
  4  the two signatures of a program contradict each other
  5  there is no C compiler, or it rejected a stub
  6  a cache entry is missing or damaged
  7  a file cannot be read or written
  8  a table of backends or an environment variable is wrong
  9  the rank, the layout or the code path of a run is wrong (docs/ranks.md)
  141  what reads the output, such as 'head', has ended before
"""


class _Group(click.Group):
    """Prints the errors of its commands on stderr, and exits with the codes of EXIT_CODES."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GtstubError as error:
            click.echo(visible(str(error)), err=True)
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # Without this, Python would fail once more when it flushes the output at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(128 + signal.SIGPIPE)
            where = "" if error.filename is None else f" '{error.filename}'"
            click.echo(f"Cannot read or write{where}: {error.strerror}.", err=True)
            ctx.exit(7)


START = example("gtstub doctor", "gtstub build programs.toml --cache DIR", "gtstub show ENTRY", "gtstub COMMAND -h")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=f"{START}\n\n{EXIT_CODES}")
@click.version_option(__version__, message="gtstub %(version)s")
def main() -> None:
    """
    C call stubs for gt4py programs that DaCe compiles.

    A stub is generated from two JSON files, the SDFG signature and the program signature. Every cache entry contains
    them ('sdfg.json', 'program.json'). 'gtstub extract' makes both from a program, or the first from an SDFG file.
    """


COMMANDS = (
    *(build, cache, check, config, debug, doctor, extract, generate, memory, plan, profile, record, replay, report),
    show,
)
for command in COMMANDS:
    main.add_command(command)
