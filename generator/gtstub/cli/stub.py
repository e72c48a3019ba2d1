"""
From the signatures of a program to its stub: the commands 'gtstub extract', 'plan', 'generate' and 'show', and the stub
that 'gtstub build' makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gtstub.cache.entry import Entry
from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json, print_code, progress
from gtstub.cli.tables.plan import print_plan, print_slots
from gtstub.errors import GtstubError, SignatureError
from gtstub.plan.document import plan_to_json
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
        write_file(file, text)


def write_file(file: Path, text: str) -> None:
    from gtstub.util.atomic import write

    click.echo(f"'{file}' was written." if write(file, text) else f"'{file}' is up to date.")


# --- Commands ---------------------------------------------------------------------------------------------------------


@click.command(
    epilog=example(
        "gtstub plan sdfg.json program.json",
        "gtstub plan sdfg.json program.json --jq '.slots[] | select(.source.kind == \"axis\") | .name'",
    )
)
@_signature_files
@json_options
def plan(sdfg_file: Path, program_file: Path, as_json: Json | None) -> None:
    """
    Print the call plan of a program.

    The plan says what fills each slot of the SDFG, what each argument must satisfy, and what must agree.
    """
    call_plan = make_plan(*_read_signatures(sdfg_file, program_file))
    if as_json is not None:
        as_json.print(plan_to_json(call_plan))
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
def show(files: tuple[Path, ...], code: bool, header: bool, as_json: Json | None) -> None:
    """
    Show what fills each slot of a program.

    A slot is one argument of the C function that DaCe made of the program. Printed are its C type, its name, its source
    and the contract that the source must satisfy.

    ENTRY is the directory of a cache entry. JSON is the call plan, of an entry with its manifest.
    """
    if len(files) > 2:
        raise click.UsageError("Give a cache entry or two signatures.")
    if code + header + (as_json is not None) > 1:
        raise click.UsageError("Give one of '--code', '--header' and '--json' or '--jq'.")
    entry = files[0] if len(files) == 1 else None
    manifest = Entry(entry).manifest() if entry else None
    sdfg, program = _read_signatures(*(entry / "sdfg.json", entry / "program.json") if entry else files)
    if code or header:
        name = f"{program.name}_stub.{'c' if code else 'h'}"
        print_code(_read_text(entry / name) if entry else _stub_files(sdfg, program, Path())[Path(name)])
        return
    call_plan = make_plan(sdfg, program)
    if as_json is not None:
        as_json.print({**plan_to_json(call_plan), **({"manifest": manifest.to_json()} if manifest else {})})
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
    from gtstub.util.atomic import replacing

    stub = source.with_suffix(".so")
    with progress("Looking for a C compiler"):
        toolchain = find(open_cache().root)
    with progress(f"Compiling '{source}'"), replacing(stub) as aside:
        toolchain.start(source, aside).wait()
    click.echo(f"'{stub}' was compiled for '{library}'.")
