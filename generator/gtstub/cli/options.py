"""Options and help that commands of several modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

jq_option = click.option(
    "--jq", "filter_", metavar="FILTER", help="Print what a jq filter makes of the JSON; text without its quotes."
)


def json_options[F: Callable[..., Any]](command: F) -> F:
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/formats.md).")
    return as_json(jq_option(command))


def example(*lines: str) -> str:
    """The end of a command's help; after a backspace click leaves lines as they are."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))
