"""Printing: a terminal gets its own width and colours, anything else plain text, a row a line, nothing cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table


WIDE = 1_000_000
"""Columns of what is no terminal."""


def make_console() -> Console:
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def make_error_console() -> Console:
    """On stderr: for what is said while something takes its time."""
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def make_bar() -> Progress:
    """How much is done, and what is being done: on stderr, on a terminal only, until it ends."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = make_error_console()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def make_table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if make_console().is_terminal else None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "slot" else "left")
    return table


def print_parts(*parts: RenderableType) -> None:
    """Prints parts with a blank line between them; those that are empty are left out."""
    console = make_console()
    for number, part in enumerate(filter(None, parts)):
        if console.is_terminal:
            console.print(part)
            continue
        with console.capture() as capture:
            console.print(part)
        lines = [line.rstrip() for line in capture.get().splitlines()]
        click.echo("\n".join(["", *lines] if number else lines))
