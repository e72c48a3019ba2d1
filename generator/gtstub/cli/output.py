"""What commands print besides tables: JSON documents, whole or through a jq filter, code, and progress."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from gtstub.errors import GtstubError
from gtstub.util.console import make_console, make_error_console


class FilterError(GtstubError):
    """A jq filter is malformed, or does not fit the document."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class Json:
    """Prints documents as JSON, or what the jq filter `filter` makes of them."""

    filter: str | None = None

    def print(self, document: Mapping[str, Any]) -> None:
        """Prints a result a line; text is printed without quotes, as a shell wants it."""
        results = [document] if self.filter is None else _filtered(document, self.filter)
        for result in results:
            click.echo(result if isinstance(result, str) else json.dumps(result, indent=1, ensure_ascii=False))


def _filtered(document: Mapping[str, Any], filter_: str) -> list[Any]:
    import jq

    try:
        return list(jq.compile(filter_).input_value(document))
    except ValueError as error:
        # The first line is the reason, which a filter that calls error("") does not give; the place follows.
        first = next(iter(str(error).splitlines()), "it fails")
        reason = first.removeprefix("jq: error: ").partition(" at <top-level>")[0]
        raise FilterError(f"The jq filter '{filter_}' does not work: {reason}.") from None


def print_code(text: str) -> None:
    """C code, with colours on a terminal, byte for byte anywhere else."""
    console = make_console()
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    from rich.syntax import Syntax

    console.print(Syntax("", "c", theme="ansi_dark").highlight(text), soft_wrap=True, end="")


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Shows on a terminal what is being done, as long as it takes."""
    console = make_error_console()
    with console.status(f"{what} ...") if console.is_terminal else contextlib.nullcontext():
        yield
