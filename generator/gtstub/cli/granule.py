"""The commands 'gtstub granule show' and 'gtstub granule verify'."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import click

from gtstub.cli.options import FILE, example, json_options
from gtstub.cli.output import Answer

folder_argument = click.argument("folder", type=FILE)


@click.group(
    epilog=example(
        "gtstub granule show FOLDER",
        "gtstub granule verify FOLDER",
    )
)
def granule() -> None:
    """
    Look at exported granules, and check them.

    gtstub.Granule exports them; docs/granules.md explains them.
    """


@granule.command(
    epilog=example(
        "gtstub granule show FOLDER",
        "gtstub granule show FOLDER --jq '.arrays[] | select(.is_argument) | .name'",
    )
)
@folder_argument
@json_options
def show(folder: Path) -> Answer:
    """
    Show the arrays, scalars, hooks and positions of a granule, and the values that its programs have compiled in.

    FOLDER is a folder that gtstub.Granule.export() has written.
    """
    from gtstub.cli.tables.granule import print_granule
    from gtstub.programs.granule.description import to_json
    from gtstub.programs.granule.verify import read_granule

    description = read_granule(folder)
    return Answer(json.loads(to_json(description)), functools.partial(print_granule, description, folder))


@granule.command(epilog=example("gtstub granule verify FOLDER"))
@folder_argument
def verify(folder: Path) -> None:
    """
    Compare what a granule does with what its steps did in Python when it was exported, bit for bit.

    Compiles the C file, runs each step from the values of the export, and compares all arrays. Hooks are replaced by
    what they wrote in Python. Exits with 1 if an array differs.
    """
    from gtstub.programs.granule.verify import verify as compare

    description = compare(folder, lambda what: click.echo(what, err=True))
    arrays, steps = len(description.arrays), len(description.steps)
    click.echo(f"Granule '{description.name}': all {arrays} arrays are the same after each of {steps} steps.")
