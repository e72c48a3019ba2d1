"""The commands 'gtstub plan', 'generate' and 'show', and the part of 'gtstub build' that builds one stub."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gtstub.cli.entries import path_or_entry
from gtstub.cli.options import FILE, cache_option, example, force_option, json_options, output_option
from gtstub.cli.output import Answer, print_code, progress
from gtstub.cli.tables.plan import print_plan, print_slots
from gtstub.entries.cache.entry import Entry
from gtstub.errors import GtstubError
from gtstub.stub.codegen.hosts import LANGUAGES
from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.planner import make_plan

if TYPE_CHECKING:
    from gtstub.entries.cache.manifest import Manifest
    from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


def _files(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds an argument for an entry or two signatures, and the option '--cache', for the cache that has the entry."""
    argument = click.argument("files", metavar="ENTRY | SDFG.json PROGRAM.json", nargs=-1, required=True, type=FILE)
    return argument(cache_option()(command))


def _found(files: Sequence[Path], cache: Path | None) -> Sequence[Path]:
    """Two files, or the directory of the entry that was named."""
    if len(files) > 2:
        raise click.UsageError("Give a cache entry or two signatures.")
    if len(files) == 2:
        if cache is not None:
            raise click.UsageError("'--cache' is for an entry; two signatures are files.")
        return files
    return (path_or_entry(files[0], cache),)


def _read(files: Sequence[Path]) -> tuple[SdfgSignature, ProgramSignature, Manifest | None]:
    """The signatures and the manifest of a cache entry, or the signatures in two files."""
    from gtstub.stub.signature.documents import program_in, sdfg_in

    manifest = None
    if len(files) == 1:
        manifest = Entry(files[0]).manifest()
        files = files[0] / "sdfg.json", files[0] / "program.json"
    sdfg_file, program_file = files
    return sdfg_in(sdfg_file), program_in(program_file), manifest


def _write_stub(files: Mapping[Path, str], force: bool) -> None:
    from gtstub.stub.codegen.output import refuse_edited

    if not force:
        refuse_edited(files)
    for file, text in files.items():
        write_file(file, text)


def write_file(file: Path, text: str) -> None:
    from gtstub.util.atomic import write

    click.echo(f"'{file}' was written." if write(file, text) else f"'{file}' is up to date.")


@click.command(
    epilog=example(
        "gtstub plan sdfg.json program.json",
        "gtstub plan sdfg.json program.json --jq '.slots[] | select(.source.kind == \"axis\") | .name'",
    )
)
@_files
@json_options
def plan(files: tuple[Path, ...], cache: Path | None) -> Answer:
    """
    Print the call plan of a program.

    ENTRY is a cache entry: its name (see 'gtstub cache -h'), or its directory. The plan lists the source of each
    slot of the SDFG, the contract of each argument, and the values that must agree.
    """
    sdfg, program, _ = _read(_found(files, cache))
    call_plan = make_plan(sdfg, program)
    return Answer(plan_to_json(call_plan), functools.partial(print_plan, call_plan))


def _language_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for each language of hosts besides C."""
    for option, language in reversed(LANGUAGES.items()):
        about = f"Also write a module for {language.name} hosts."
        command = click.option(f"--{option}", is_flag=True, help=about)(command)
    return command


@click.command(
    epilog=example(
        "gtstub generate sdfg.json program.json -o stubs",
        "gtstub generate sdfg.json program.json -o stubs --fortran --check",
        "gtstub generate ENTRY -o stubs --name advect_first",
    )
)
@_files
@output_option
@force_option
@_language_options
@click.option("--name", default="", help="The stub's name, if a host has several variants.  [default: the program's]")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is missing, edited or out of date.")
def generate(
    files: tuple[Path, ...],
    cache: Path | None,
    output: Path,
    force: bool,
    name: str,
    check: bool,
    **chosen: bool,
) -> None:
    """
    Write a stub: a C source and its header.

    ENTRY is a cache entry: its name (see 'gtstub cache -h'), or its directory. The files are called <name>_stub.c
    and <name>_stub.h, a Fortran module <name>_stub.f90. The same signatures always give the same bytes. A file that
    would not change is not touched. A file that was edited by hand is replaced only with '--force'.
    """
    from gtstub.stub.codegen.output import problem
    from gtstub.stub.codegen.stub import make_stub

    sdfg, program, _ = _read(_found(files, cache))
    stub = make_stub(sdfg, program, name=name, languages=[LANGUAGES[each] for each in LANGUAGES if chosen[each]])
    written = {output / file: text for file, text in stub.files.items()}
    if not check:
        _write_stub(written, force)
        return
    problems = list(filter(None, (problem(file, text) for file, text in written.items())))
    for found in problems:
        click.echo(found, err=True)
    click.get_current_context().exit(1 if problems else 0)


@click.command(
    epilog=example(
        "gtstub show ENTRY",
        "gtstub show sdfg.json program.json --code",
        "gtstub show ENTRY --jq .manifest",
    )
)
@_files
@click.option("--code", is_flag=True, help="Print the generated C source instead.")
@click.option("--header", is_flag=True, help="Print the generated C header instead.")
@json_options
def show(files: Sequence[Path], cache: Path | None, code: bool, header: bool) -> Answer:
    """
    Show how each slot of a program is filled.

    A slot is one argument of the C function that DaCe generates for the program. The table has its C type, its name,
    its source and the contract that the source must satisfy.

    ENTRY is a cache entry: its name (see 'gtstub cache -h'), or its directory. The JSON document is the call plan;
    for an entry it includes the manifest.
    """
    given = click.get_current_context().params
    if code + header + (given["as_json"] or given["filter_"] is not None) > 1:
        raise click.UsageError("Give one of '--code', '--header' and '--json' or '--jq'.")
    files = _found(files, cache)
    sdfg, program, manifest = _read(files)
    if code or header:
        from gtstub.stub.codegen.stub import make_stub

        name = f"{program.name}_stub.{'c' if code else 'h'}"
        text = (files[0] / name).read_text(encoding="utf-8") if manifest else make_stub(sdfg, program).files[name]
        return Answer({}, functools.partial(print_code, text))
    call_plan = make_plan(sdfg, program)
    document = {**plan_to_json(call_plan), **({"manifest": manifest.to_json()} if manifest else {})}
    evaluated = manifest.ingredients.get("evaluated", ()) if manifest else ()
    return Answer(document, functools.partial(print_slots, call_plan, evaluated))


def build_stub(sdfg_file: Path, program_file: Path, library: Path, output: Path, force: bool) -> None:
    """Writes a stub into `output`, and compiles it for `library`, which DaCe has built from the SDFG."""
    from gtstub.entries.cache.store import open_cache
    from gtstub.entries.toolchain.compiler import find
    from gtstub.stub.codegen.stub import make_stub
    from gtstub.util.atomic import replacing

    sdfg, program, _ = _read((sdfg_file, program_file))
    stub = make_stub(sdfg, program)
    if f"__program_{sdfg.name}\0".encode() not in library.read_bytes():
        raise GtstubError(
            f"Library '{library}' was not built from SDFG '{sdfg.name}': it has no function '__program_{sdfg.name}'."
        )
    _write_stub({output / file: text for file, text in stub.files.items()}, force)
    source = output / stub.source
    compiled = source.with_suffix(".so")
    with progress("Looking for a C compiler"):
        toolchain = find(open_cache().root)
    with progress(f"Compiling '{source}'"), replacing(compiled) as aside:
        toolchain.start(source, aside).wait()
    click.echo(f"'{compiled}' was compiled for '{library}'.")
