"""
Output to a terminal or a pipe.

A terminal gets its own width and colours. Anything else gets plain text, one line a row, with nothing cut off.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table


def make_console(*, stderr: bool = False) -> Console:
    """On stderr, a console is for messages about the progress of long operations."""
    from gtstub.util.terminal import SafeConsole

    console = SafeConsole(stderr=stderr)
    if not console.is_terminal:
        console.width = 1_000_000
    return console


def make_bar() -> Progress:
    """A progress bar on stderr. It is shown on a terminal only, and disappears at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = make_console(stderr=True)
    # The description is cut off where the terminal ends; the other columns keep their widths.
    description = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1))
    columns = (SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), description)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal, expand=True)


def make_table(*columns: str, rows: Iterable[Iterable[RenderableType]] = ()) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if make_console().is_terminal else None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "slot" else "left")
    for row in rows:
        table.add_row(*row)
    return table


def plain(part: RenderableType) -> str:
    """A part as text without colours, one line a row."""
    from gtstub.util.terminal import SafeConsole

    console = SafeConsole(file=io.StringIO(), width=1_000_000)
    with console.capture() as capture:
        console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def print_parts(*parts: RenderableType) -> None:
    """Prints parts with a blank line between them. Empty texts and tables without rows are left out."""
    console = make_console()
    shown = [part for part in parts if part and getattr(part, "row_count", None) != 0]
    for number, part in enumerate(shown):
        if console.is_terminal:
            console.print(part)
        else:
            click.echo(("\n" if number else "") + plain(part))
