"""The command 'gtstub extract', which makes signatures from an SDFG file or a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from gtstub.cli.options import FILE, example, jq_option
from gtstub.cli.output import print_json, progress
from gtstub.cli.stub import write_file


def _setting(text: str) -> tuple[str, Any]:
    """The name and the value of a text NAME=VALUE, whose value is JSON."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        raise click.BadParameter(f"'{text}' is not NAME=VALUE with a number, true, false or other JSON.") from None


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
@click.option("--grid", metavar="MODULE:NAME", help="A function: makes an offset provider or a grid.")
@click.option("--static", metavar="NAME=VALUE", multiple=True, type=_setting, help="A scalar to compile in.")
@click.option("--option", metavar="NAME=VALUE", multiple=True, type=_setting, help="An option of make_backend().")
@jq_option
def extract(
    source: str,
    output: Path | None,
    gpu: Literal["cuda", "rocm"],
    grid: str | None,
    static: tuple[tuple[str, Any], ...],
    option: tuple[tuple[str, Any], ...],
    filter_: str | None,
) -> None:
    """
    Write the signatures of a saved SDFG or of a program.

    FILE.sdfg was saved by DaCe, as '.sdfg' or '.sdfgz', and has one signature. MODULE:PROGRAM is a gt4py program or
    field operator, or a DaCe program, which is lowered but not built, and has two. The function of '--grid' is called
    without arguments. This command needs DaCe, and for a program of gt4py gt4py.

    With '--output' the files are <name>.sdfg.json and, for a program, <name>.program.json. Without it the signatures
    are printed, those of a program as one document with the members 'sdfg' and 'program'.
    """
    if output is not None and filter_ is not None:
        raise click.UsageError("Give '--output' or '--jq', not both.")
    from gtstub.frameworks.resolve import frameworks, signatures_of
    from gtstub.stub.signature.documents import program_to_json, sdfg_to_json

    is_file = Path(source).suffix in (".sdfg", ".sdfgz")
    if is_file and (grid or static or option):
        raise click.UsageError("'--grid', '--static' and '--option' are for programs, not for SDFG files.")
    with progress(f"Reading '{source}'" if is_file else f"Lowering '{source}'"):
        if is_file:
            with frameworks("extract"):
                from gtstub.frameworks.dace.sdfg_signature import read_sdfg

            sdfg = read_sdfg(Path(source), gpu)
            texts = {"sdfg": sdfg_to_json(sdfg)}
        else:
            program, sdfg = signatures_of(source, grid, dict(static), dict(option))
            texts = {"sdfg": sdfg_to_json(sdfg), "program": program_to_json(program)}
    if output is not None:
        for kind, text in texts.items():
            write_file(output / f"{sdfg.name}.{kind}.json", text)
    elif is_file and filter_ is None:
        click.echo(texts["sdfg"], nl=False)
    else:
        documents = {kind: json.loads(text) for kind, text in texts.items()}
        print_json(documents["sdfg"] if is_file else documents, filter_)
