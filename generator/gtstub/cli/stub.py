"""
From the signatures of a program to its stub: the commands 'gtstub extract', 'plan', 'generate' and 'show', and the stub
that 'gtstub build' makes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from gtstub.cache.entry import read_manifest
from gtstub.cli.options import example, jq_option, json_options
from gtstub.cli.report import plan_to_json, print_code, print_document, print_plan, print_slots, progress
from gtstub.errors import GtstubError, SignatureError
from gtstub.plan.planner import make_plan

if TYPE_CHECKING:
    from gtstub.signature.model import ProgramSignature, SdfgSignature

# --- What commands have in common -------------------------------------------------------------------------------------


def _signature_files[F: Callable[..., Any]](command: F) -> F:
    file = click.Path(path_type=Path)
    program = click.argument("program_file", metavar="PROGRAM.json", type=file)
    return click.argument("sdfg_file", metavar="SDFG.json", type=file)(program(command))


def output_directory[F: Callable[..., Any]](command: F) -> F:
    return click.option(
        "-o",
        "--output",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=Path(),
        show_default="the current directory",
        help="Where the files are written.",
    )(command)


force_option = click.option("--force", is_flag=True, help="Replace files that were edited by hand, too.")


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


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SignatureError(f"'{file}' is not JSON: it is not UTF-8 text.") from None


def _read_signatures(sdfg_file: Path, program_file: Path) -> tuple[SdfgSignature, ProgramSignature]:
    from gtstub.signature.documents import program_from_json, sdfg_from_json

    return (
        sdfg_from_json(_read_text(sdfg_file), str(sdfg_file)),
        program_from_json(_read_text(program_file), str(program_file)),
    )


def _stub_files(
    sdfg: SdfgSignature, program: ProgramSignature, directory: Path, *, name: str = "", fortran: bool = False
) -> Mapping[Path, str]:
    """Header and source of a stub, and its Fortran module: where they belong in `directory`, and their texts."""
    from gtstub.codegen.stub import make_stub

    files = make_stub(sdfg, program, name=name, fortran=fortran).files
    return {directory / file: text for file, text in files.items()}


def _check(files: Mapping[Path, str]) -> None:
    """Says of every file what is wrong with it, and exits with 1 if anything is."""
    from gtstub.codegen.output import problem

    problems = [problem(file, text) for file, text in files.items()]
    for found in filter(None, problems):
        click.echo(found, err=True)
    click.get_current_context().exit(1 if any(problems) else 0)


def _write_stub(files: Mapping[Path, str], force: bool) -> None:
    from gtstub.codegen.output import refuse_edited

    if not force:
        refuse_edited(files)
    for file, text in files.items():
        _write(file, text)


def _write(file: Path, text: str) -> None:
    from gtstub.codegen.output import write

    click.echo(f"'{file}' was written." if write(file, text) else f"'{file}' is up to date.")


# --- Commands ---------------------------------------------------------------------------------------------------------


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
            _write(output / f"{sdfg.name}.{kind}.json", text)
    elif is_file and filter_ is None:
        click.echo(texts["sdfg"], nl=False)
    else:
        documents = {kind: json.loads(text) for kind, text in texts.items()}
        print_document(documents["sdfg"] if is_file else documents, filter_)


@click.command(
    epilog=example(
        "gtstub plan sdfg.json program.json",
        "gtstub plan sdfg.json program.json --jq '.slots[] | select(.source.kind == \"axis\") | .name'",
    )
)
@_signature_files
@json_options
def plan(sdfg_file: Path, program_file: Path, as_json: bool, filter_: str | None) -> None:
    """
    Print the call plan of a program.

    The plan says what fills each slot of the SDFG, what each argument must satisfy, and what must agree.
    """
    call_plan = make_plan(*_read_signatures(sdfg_file, program_file))
    if as_json or filter_ is not None:
        print_document(plan_to_json(call_plan), filter_)
    else:
        print_plan(call_plan)


@click.command(
    epilog=example(
        "gtstub generate sdfg.json program.json -o stubs",
        "gtstub generate sdfg.json program.json -o stubs --fortran --check",
        "gtstub generate sdfg.json program.json -o stubs --name advect_first",
    )
)
@_signature_files
@output_directory
@force_option
@click.option("--fortran", is_flag=True, help="Write a module for Fortran hosts, too.")
@click.option("--name", default="", help="Of the stub, where one host has several variants.  [default: the program's]")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is missing, edited or out of date.")
def generate(
    sdfg_file: Path, program_file: Path, output: Path, force: bool, fortran: bool, name: str, check: bool
) -> None:
    """
    Write a stub: a C source and its header.

    Their names are <name>_stub.c and <name>_stub.h, that of a Fortran module <name>_stub.f90.
    The same signatures give the same bytes, and a file that would stay the same is not touched. A file that was edited
    by hand is not replaced without '--force'.
    """
    files = _stub_files(*_read_signatures(sdfg_file, program_file), output, name=name, fortran=fortran)
    if check:
        _check(files)
    else:
        _write_stub(files, force)


@click.command(
    epilog=example(
        "gtstub show ENTRY",
        "gtstub show sdfg.json program.json --code",
        "gtstub show ENTRY --jq .manifest",
    )
)
@click.argument(
    "files", metavar="ENTRY | SDFG.json PROGRAM.json", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--code", is_flag=True, help="Print the generated C source instead.")
@click.option("--header", is_flag=True, help="Print the generated C header instead.")
@json_options
def show(files: tuple[Path, ...], code: bool, header: bool, as_json: bool, filter_: str | None) -> None:
    """
    Show what fills each slot of a program.

    A slot is one argument of the C function that DaCe made of the program. Printed are its C type, its name, its source
    and the contract that the source must satisfy.

    ENTRY is the directory of a cache entry. JSON is the call plan, of an entry with its manifest.
    """
    if len(files) > 2:
        raise click.UsageError("Give a cache entry or two signatures.")
    if code + header + (as_json or filter_ is not None) > 1:
        raise click.UsageError("Give one of '--code', '--header' and '--json' or '--jq'.")
    entry = files[0] if len(files) == 1 else None
    manifest = read_manifest(entry) if entry else None
    sdfg, program = _read_signatures(*(entry / "sdfg.json", entry / "program.json") if entry else files)
    if code or header:
        name = f"{program.name}_stub.{'c' if code else 'h'}"
        print_code(_read_text(entry / name) if entry else _stub_files(sdfg, program, Path())[Path(name)])
        return
    call_plan = make_plan(sdfg, program)
    if as_json or filter_ is not None:
        print_document({**plan_to_json(call_plan), **({"manifest": manifest} if manifest else {})}, filter_)
    else:
        print_slots(call_plan)


# --- The stub of 'gtstub build' ---------------------------------------------------------------------------------------


def build_stub(sdfg_file: Path, program_file: Path, library: Path, output: Path, force: bool) -> None:
    """Writes a stub into `output` and compiles it, for the library that DaCe built of the SDFG."""
    sdfg, program = _read_signatures(sdfg_file, program_file)
    files = _stub_files(sdfg, program, output)
    if f"__program_{sdfg.name}\0".encode() not in library.read_bytes():
        raise GtstubError(f"Library '{library}' is not of SDFG '{sdfg.name}': it has no '__program_{sdfg.name}'.")
    _write_stub(files, force)
    _, source = files
    from gtstub.cache.store import open_cache
    from gtstub.toolchain.compiler import find

    stub = source.with_suffix(".so")
    aside = stub.with_name(f".{stub.name}.{os.getpid()}")
    with progress("Looking for a C compiler"):
        toolchain = find(open_cache().root)
    try:
        with progress(f"Compiling '{source}'"):
            toolchain.start(source, aside).wait()
        aside.replace(stub)
    finally:
        aside.unlink(missing_ok=True)
    click.echo(f"'{stub}' was compiled for '{library}'.")
