"""The command line, `gtstub`. It imports the module of the command that is given, and the command what takes long."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from typing import Any, cast, override

import click

from gtstub._version import __version__
from gtstub.cli.options import example
from gtstub.cli.output import cannot
from gtstub.errors import GtstubError
from gtstub.util.visible import visible

EXIT_CODES = """
\b
Exit codes:
  0  done
  1  the answer is no ('check', 'generate --check', 'doctor', 'replay --compare'), or any error not listed below
  2  the command line or a jq filter is wrong; 'check', 'memory' or 'report' cannot read an SDFG or entry
  3  a signature, an SDFG file, a profile, a timeline or a recording is malformed
  4  the two signatures of a program contradict each other
  5  there is no C compiler, or it rejected a stub
  6  a cache entry is missing or damaged
  7  a file cannot be read or written
  8  a table of backends or an environment variable is wrong
  9  the rank, the layout or the code path of a run is wrong (docs/ranks.md)
  141  what reads the output, such as 'head', has ended before
"""


COMMANDS = {
    **{name: name for name in ("build", "cache", "check", "config", "debug", "doctor", "extract", "granule", "memory")},
    **{name: name for name in ("profile", "record", "replay", "report", "trace")},
    **dict.fromkeys(("generate", "plan", "show"), "stub"),
}
"""The module of each command."""


class _Group(click.Group):
    """Prints the errors of its commands on stderr, and exits with the codes of EXIT_CODES."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gtstub.cli.{COMMANDS[cmd_name]}")
        return cast(click.Command, getattr(module, cmd_name))

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
            click.echo(cannot(error), err=True)
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
