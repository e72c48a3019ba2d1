"""The command 'gtstub debug'."""

from __future__ import annotations

import click

from gtstub.cli.command import run_command
from gtstub.cli.options import example
from gtstub.settings import BUILD_CHECKS, CHECK, DEFAULT_CHECKS, checks


def _text(given: str | None) -> str:
    """The option, or else GTSTUB_CHECK if it has checks, or else 'finite'."""
    text = (checks() or DEFAULT_CHECKS) if given is None else given
    from gtstub import _host

    try:
        _host.end_checks(_host.begin_checks(text))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=CHECK if given is None else "--check") from error
    return text


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=example(
        "gtstub debug -- python model.py",
        'gtstub debug --check "fv3; finite; only diffuse*; warn" -- mpirun -n 2 ./icon',
        'gtstub debug --check "progress; trace 3,4,0" -- python model.py',
        "gtstub debug --check bounds -- python model.py",
        "gtstub debug --build-checks -- python model.py",
    ),
)
@click.option(
    "--check", "text", metavar="TEXT", help="What to check (docs/debugging.md); 'finite' unless GTSTUB_CHECK is set."
)
@click.option("--build-checks", is_flag=True, help="Build programs that also check what each of their maps writes.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def debug(text: str | None, build_checks: bool, command: tuple[str, ...]) -> None:
    """
    Run COMMAND and check the values in the fields of all calls.

    A call fails if it writes a value that TEXT refuses, or if a field that it only reads has one. The error names
    program, argument, index and value. With 'bounds', a call also fails if it accesses memory outside of its arguments.
    This works in Python, C and Fortran hosts.

    The exit code is that of COMMAND.
    """
    variables = {CHECK: _text(text), **({BUILD_CHECKS: "1"} if build_checks else {})}
    click.get_current_context().exit(run_command(command, variables))
