"""Options and help texts that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gtstub.cli.output import Answer, print_json

FILE = click.Path(path_type=Path)
"""The type of arguments and options that are paths."""

output_option = click.option(
    "-o", "--output", metavar="DIR", type=FILE, default=".", show_default=True, help="Where to write the files."
)
force_option = click.option("--force", is_flag=True, help="Also replace files that were edited by hand.")
plot_option = functools.partial(click.option, "--plot", "plot_file", metavar="FILE", type=FILE)
jq_option = click.option(
    "--jq", "filter_", metavar="FILTER", help="Print the result of a jq filter on the JSON; strings without quotes."
)


def json_options(command: Callable[..., Answer]) -> Callable[..., None]:
    """Adds `--json` and `--jq` to a command, prints its answer, and exits with the answer's exit code."""

    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, filter_: str | None, **kwargs: Any) -> None:
        answer = command(*args, **kwargs)
        if as_json or filter_ is not None:
            print_json(answer.document, filter_)
        else:
            answer.show()
        click.get_current_context().exit(answer.exit_code)

    return click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/formats.md).")(jq_option(wrapped))


def example(*lines: str) -> str:
    """The examples at the end of a command's help. After a backspace character click keeps the line breaks."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))
