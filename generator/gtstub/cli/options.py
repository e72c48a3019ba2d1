"""Options and help that commands of several modules share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import click

from gtstub.cli.output import Json

jq_option = click.option(
    "--jq", "filter_", metavar="FILTER", help="Print what a jq filter makes of the JSON; text without its quotes."
)


def json_options[F: Callable[..., Any]](command: F) -> F:
    """Adds `--json` and `--jq`; the command gets `as_json`, which is None if neither was given."""

    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, filter_: str | None, **kwargs: Any) -> Any:
        is_wanted = as_json or filter_ is not None
        return command(*args, as_json=Json(filter_) if is_wanted else None, **kwargs)

    option = click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/formats.md).")
    return cast(F, option(jq_option(wrapped)))


def example(*lines: str) -> str:
    """The end of a command's help; after a backspace click leaves lines as they are."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))
