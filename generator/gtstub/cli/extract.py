"""The command 'gtstub extract': from an SDFG file or a gt4py program to signatures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from gtstub.cli.options import example, jq_option
from gtstub.cli.output import Json, progress
from gtstub.cli.stub import write_file


def _settings(_context: click.Context, _parameter: click.Parameter, settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; values are JSON."""
    values = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            values[name] = json.loads(text)
        except ValueError:
            raise click.BadParameter(
                f"'{setting}' is not NAME=VALUE with a number, true, false or other JSON."
            ) from None
    return values


@click.command(
    epilog=example(
        "gtstub extract program.sdfgz -o signatures",
        "gtstub extract program.sdfg --jq '.arguments[].name'",
        "gtstub extract my.model:program --grid my.model:make_offset_provider -o signatures",
        "gtstub extract my.model:program --static limited_area=true --option auto_optimize=false -o signatures",
    )
)
@click.argument("source", metavar="FILE.sdfg | MODULE:PROGRAM")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write <name>.sdfg.json here, and for a program <name>.program.json.  [default: print them]",
)
@click.option("--gpu", type=click.Choice(["cuda", "rocm"]), default="cuda", help="What an SDFG file calls a GPU.")
@click.option(
    "--grid", metavar="MODULE:NAME", help="Called without arguments, it makes the offset provider, or a grid."
)
@click.option("--static", metavar="NAME=VALUE", multiple=True, callback=_settings, help="A scalar to compile in.")
@click.option("--option", metavar="NAME=VALUE", multiple=True, callback=_settings, help="An option of make_backend().")
@jq_option
def extract(
    source: str,
    output: Path | None,
    gpu: Literal["cuda", "rocm"],
    grid: str | None,
    static: dict[str, Any],
    option: dict[str, Any],
    filter_: str | None,
) -> None:
    """
    Write the signature of a saved SDFG, or both of a program.

    FILE.sdfg was saved by DaCe, as '.sdfg' or '.sdfgz'. MODULE:PROGRAM is a gt4py program or field operator, which is
    lowered but not built. This command needs DaCe, and for a program gt4py.

    Without '--output' signatures are printed, those of a program as one document with members 'sdfg' and 'program'.
    """
    if output is not None and filter_ is not None:
        raise click.UsageError("Give '--output' or '--jq', not both.")
    from gtstub.frameworks.resolve import from_file, from_module
    from gtstub.signature.documents import program_to_json, sdfg_to_json

    is_file = Path(source).suffix in (".sdfg", ".sdfgz")
    if is_file and (grid or static or option):
        raise click.UsageError("'--grid', '--static' and '--option' are for programs, not for SDFG files.")
    with progress(f"Reading '{source}'" if is_file else f"Lowering '{source}'"):
        if is_file:
            sdfg = from_file(Path(source), gpu)
            texts = {"sdfg": sdfg_to_json(sdfg)}
        else:
            program, sdfg = from_module(source, grid, static, option)
            texts = {"sdfg": sdfg_to_json(sdfg), "program": program_to_json(program)}
    if output is not None:
        for kind, text in texts.items():
            write_file(output / f"{sdfg.name}.{kind}.json", text)
    elif is_file and filter_ is None:
        click.echo(texts["sdfg"], nl=False)
    else:
        documents = {kind: json.loads(text) for kind, text in texts.items()}
        Json(filter_).print(documents["sdfg"] if is_file else documents)
