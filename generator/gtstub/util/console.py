"""
Output to a terminal or a pipe.

A terminal gets its own width and colours. Anything else gets plain text, one line a row, with nothing cut off.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table


WIDE = 1_000_000
"""The width of what is not a terminal."""


SHORTEST_WORD = 16
"""Characters of the words that no table breaks."""


def make_console(*, stderr: bool = False) -> Console:
    """On stderr, a console is for messages about the progress of long operations."""
    from gtstub.util.terminal import SafeConsole

    console = SafeConsole(stderr=stderr)
    if not console.is_terminal:
        console.width = WIDE
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

    lined: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)}
    form = lined if make_console().is_terminal else {"box": None}
    table = Table(pad_edge=False, header_style="bold", **form)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "slot" else "left")
    for row in rows:
        table.add_row(*row)
    return table


def fold(table: Table, width: int, *, breaks_words: bool) -> None:
    """
    Folds the widest columns of a table that is wider than `width`, between words. If that is not enough, breaks long
    words, or leaves the table as it is.
    """
    from rich.measure import Measurement

    from gtstub.util.terminal import SafeConsole

    console = SafeConsole(file=io.StringIO(), width=WIDE)
    options = console.options
    cells = [[Measurement.get(console, options, each) for each in (it.header, *it.cells)] for it in table.columns]
    widths = [max(each.maximum for each in column) for column in cells]
    least = [max(each.minimum for each in column) for column in cells]
    room = width - (Measurement.get(console, options, table).maximum - sum(widths))
    if breaks_words and sum(least) > room:
        least = [min(each, SHORTEST_WORD) for each in least]
    if sum(widths) <= room or sum(least) > room:
        return
    while (excess := sum(widths) - room) > 0:
        widest = max((n for n in range(len(widths)) if widths[n] > least[n]), key=widths.__getitem__)
        following = max((each for each in widths if each < widths[widest]), default=0)
        widths[widest] = max(least[widest], following, widths[widest] - excess)
    for column, each in zip(table.columns, widths, strict=True):
        column.width = each


def plain(part: RenderableType) -> str:
    """A part as text without colours, one line a row, unless it is folded."""
    from gtstub.util.terminal import SafeConsole

    console = SafeConsole(file=io.StringIO(), width=WIDE)
    with console.capture() as capture:
        console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def print_parts(*parts: RenderableType, width: int = WIDE) -> None:
    """
    Prints parts with a blank line between them. Empty texts and tables without rows are left out. Tables are folded to
    the width of a terminal, and to `width` anywhere else, where all words stay whole.
    """
    from rich.table import Table

    console = make_console()
    shown = [part for part in parts if part and getattr(part, "row_count", None) != 0]
    for number, part in enumerate(shown):
        if isinstance(part, Table):
            fold(part, console.width if console.is_terminal else width, breaks_words=console.is_terminal)
        if number:
            click.echo()
        if console.is_terminal:
            console.print(part)
        else:
            click.echo(plain(part))
