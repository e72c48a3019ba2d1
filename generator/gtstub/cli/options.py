"""Options and help texts that several commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gtstub.cli.output import Answer, check_filter, print_json

FILE = click.Path(path_type=Path)
"""The type of arguments and options that are paths."""

output_option = click.option(
    "-o", "--output", metavar="DIR", type=FILE, default=".", show_default=True, help="Where to write the files."
)
force_option = click.option("--force", is_flag=True, help="Also replace files that were edited by hand.")
cache_option = functools.partial(
    click.option,
    "--cache",
    metavar="DIR",
    type=FILE,
    help="Use this cache instead of the one that 'gtstub cache path' prints.",
)
plot_option = functools.partial(click.option, "--plot", "plot_file", metavar="FILE", type=FILE)
jq_option = click.option(
    "--jq", "filter_", metavar="FILTER", help="Print the result of a jq filter on the JSON; strings without quotes."
)


def json_options(command: Callable[..., Answer]) -> Callable[..., None]:
    """Adds `--json` and `--jq` to a command, prints its answer, and exits with the answer's exit code."""

    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool, filter_: str | None, **kwargs: Any) -> None:
        if filter_ is not None:
            check_filter(filter_)
        answer = command(*args, **kwargs)
        if as_json or filter_ is not None:
            print_json(answer.document, filter_)
        else:
            answer.show()
        click.get_current_context().exit(answer.exit_code)

    return click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/formats.md).")(jq_option(wrapped))


def _numbers(_context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> Mapping[str, int]:
    """The integers of options of the form NAME=N, by name."""
    numbers: dict[str, int] = {}
    for text in texts:
        found = re.fullmatch(r"([^=]+)=(-?[0-9]{1,18})", text)
        if found is None:
            raise click.BadParameter(f"'{text}' is not of the form {parameter.metavar}, with an integer.")
        name, number = found[1], int(found[2])
        if name in numbers:
            raise click.BadParameter(f"'{name}' is given twice.")
        numbers[name] = number
    return numbers


def _sizes(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> Mapping[str, int]:
    sizes = _numbers(context, parameter, texts)
    for name, size in sizes.items():
        if size < 0:
            raise click.BadParameter(f"The size of '{name}' is negative.")
    return sizes


def size_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--size` and `--set` to a command, which gets them as the mappings `dimensions` and `symbols`."""
    size = click.option(
        "--size", "dimensions", metavar="DIM=N", multiple=True, callback=_sizes, help="The size of a dimension."
    )
    value = click.option(
        "--set", "symbols", metavar="SYMBOL=N", multiple=True, callback=_numbers, help="The value of an SDFG's symbol."
    )
    return size(value(command))


def example(*lines: str, title: str = "Example") -> str:
    """The examples at the end of a command's help. After a backspace character click keeps the line breaks."""
    return "\n".join(("\b", f"{title}:", *(f"  {line}" for line in lines)))
