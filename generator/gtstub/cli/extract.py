"""The command 'gtstub extract', which makes signatures from an SDFG file or a gt4py program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from gtstub.cli.options import FILE, example, jq_option
from gtstub.cli.output import Json, progress
from gtstub.cli.stub import write_file


def _settings(_context: click.Context, _parameter: click.Parameter, settings: tuple[str, ...]) -> dict[str, Any]:
    """A dictionary made from texts NAME=VALUE, whose values are JSON."""
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
@click.option("-o", "--output", metavar="DIR", type=FILE, help="Write signatures to DIR.  [default: print them]")
@click.option("--gpu", type=click.Choice(["cuda", "rocm"]), default="cuda", help="The kind of GPU in an SDFG file.")
@click.option("--grid", metavar="MODULE:NAME", help="A function of no arguments: makes the offset provider or a grid.")
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
    Write the signature of a saved SDFG, or both signatures of a program.

    FILE.sdfg was saved by DaCe, as '.sdfg' or '.sdfgz'. MODULE:PROGRAM is a gt4py program or field operator, which is
    lowered but not built. This command needs DaCe, and for a program gt4py.

    With '--output' the files are <name>.sdfg.json and, for a program, <name>.program.json. Without it the signatures
    are printed, those of a program as one document with the members 'sdfg' and 'program'.
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
