"""What commands print besides tables: JSON documents, code, and progress."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from gtstub.errors import GtstubError
from gtstub.util.console import make_console


class FilterError(GtstubError):
    """A jq filter is malformed, or does not fit the document."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class Answer:
    """The result of a command: a document for '--json' and '--jq', a function that prints tables, and the exit code."""

    document: Mapping[str, Any]
    show: Callable[[], None]
    exit_code: int = 0


def print_json(document: Mapping[str, Any], filter_: str | None = None) -> None:
    """Prints a document as JSON, or each result of a jq filter on it. Strings have no quotes, as a shell needs them."""
    for result in [document] if filter_ is None else _filtered(document, filter_):
        text = result if isinstance(result, str) else json.dumps(result, indent=1, ensure_ascii=False)
        # A manifest may contain halves of surrogate pairs. JSON has escape sequences for them, UTF-8 has nothing.
        click.echo(text.encode(errors="backslashreplace"))


def cannot(error: OSError) -> str:
    """The sentence about a file that cannot be read or written."""
    where = "" if error.filename is None else f" '{error.filename}'"
    return f"Cannot read or write{where}: {error.strerror}."


def check_filter(filter_: str) -> None:
    """Raises FilterError for a malformed jq filter, so that a command can refuse it before it does anything."""
    with _refusing(filter_):
        _compiled(filter_)


@functools.cache
def _compiled(filter_: str) -> Any:
    import jq

    return jq.compile(filter_)


def _filtered(document: Mapping[str, Any], filter_: str) -> Iterator[Any]:
    """Yields results as they come. Until the last one Ctrl-C ends the process, because jq would not notice it."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with _refusing(filter_):
            yield from _compiled(filter_).input_value(document)
    finally:
        signal.signal(signal.SIGINT, interrupt)


@contextlib.contextmanager
def _refusing(filter_: str) -> Iterator[None]:
    """Raises FilterError for errors of jq."""
    try:
        yield
    except ValueError as error:
        # The first line has the reason and the place. It is empty for the filter 'error("")'.
        first = next(iter(str(error).splitlines()), "it fails")
        reason = first.removeprefix("jq: error: ").partition(" at <top-level>")[0]
        raise FilterError(f"The jq filter '{filter_}' does not work: {reason}.") from None


def print_code(text: str) -> None:
    """Prints C code: with colours on a terminal, and byte for byte anywhere else."""
    console = make_console()
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    from rich.syntax import Syntax

    console.print(Syntax("", "c", theme="ansi_dark").highlight(text), soft_wrap=True, end="")


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Shows the text `what` on a terminal until the block ends."""
    console = make_console(stderr=True)
    with console.status(f"{what} ...") if console.is_terminal else contextlib.nullcontext():
        yield
