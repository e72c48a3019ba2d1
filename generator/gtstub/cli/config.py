"""
The commands 'gtstub config': the backend and the options of a program and the lines of tables that set them, the DaCe
configuration of builds, and the directories in which other build systems find the runtime.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import click

from gtstub.cli.options import example, json_options
from gtstub.cli.output import Answer
from gtstub.cli.tables.backends import print_choice, print_dace_config, print_tables
from gtstub.entries.toolchain.answer import BUILD_TYPES
from gtstub.entries.toolchain.arch import arch as arch_of
from gtstub.frameworks.backends.choice import Choice, Reason, Tag, choose
from gtstub.frameworks.backends.tables import Setting, load_tables, table_files
from gtstub.install import LIBRARIES
from gtstub.stub.signature.model import Device


@click.group(epilog=example("gtstub config explain graupel_run --tag GPU"))
def config() -> None:
    """
    Show the backend of a program, its options, and their origin.

    Tables in TOML, gtstub's own and yours, set the backend and its options (docs/backends.md). 'cmake' and 'pkgconfig'
    print directories for other build systems (docs/cmake.md).
    """


@config.command(
    epilog=example(
        "gtstub config explain graupel_run --tag GPU --arch sm_90",
        "gtstub config explain graupel_run --jq .options",
    )
)
@click.argument("program")
@click.option(
    "--tag",
    metavar="TAG",
    type=click.Choice(list(Tag), case_sensitive=False),
    default=Tag.CPU,
    show_default=True,
    help=f"One of {', '.join(Tag)}.",
)
@click.option("--arch", help="Such as 'zen4' or 'sm_90'.  [default: this machine's]")
@json_options
def explain(program: str, tag: Tag, arch: str | None) -> Answer:
    """
    Show which table line sets each option of a program.

    Prints the options of the backend with their values, the line that sets each, and the value that this line overrode.
    Options that no table names have the backend's own defaults. An option that the backend does not know is an error,
    as in a compilation. This check needs gt4py.
    """
    tag = Tag(tag)
    choice = choose(program, tag, arch_of(tag.device) if arch is None else arch, load_tables())
    missing = _check(choice)
    note = f"The options were not checked: '{missing}' is not installed." if missing else ""
    reasons = [_reason_to_json(reason) for reason in choice.reasons]
    document = {**vars(choice), "reasons": reasons, "checked": not missing}
    return Answer(document, functools.partial(print_choice, choice, table_files(), note))


@config.command(epilog=example("gtstub config show"))
@json_options
def show() -> Answer:
    """Print the files of tables, and all their settings."""
    sources, tables = table_files(), load_tables()
    files = [{"from": origin, "file": str(file), "exists": file.exists()} for origin, file in sources]
    settings = [_setting_to_json(setting) for table in tables for setting in table.settings]
    return Answer({"files": files, "settings": settings}, functools.partial(print_tables, sources, tables))


@config.command(epilog=example("gtstub config dace", "gtstub config dace --jq '.settings.\"compiler.cpu.args\"'"))
@click.option("--device", type=click.Choice(["cpu", "cuda", "rocm"]), default="cpu", show_default=True)
@click.option(
    "--build-type", type=click.Choice(BUILD_TYPES), default="Release", show_default=True, help="A build type of CMake."
)
@json_options
def dace(device: Device, build_type: str) -> Answer:
    """
    Print the DaCe configuration of builds, with origins.

    The configuration is gtstub's own (docs/dace-config.md); configuration files of DaCe do not change it. The options
    of 'make_backend' and the tables of backends are applied after it; 'gtstub config explain PROGRAM' shows them.
    """
    from gtstub.frameworks.dace.dace_config import FILE, configuration

    settings = configuration(device, build_type)
    document = {"file": str(FILE), "settings": {name: dataclasses.asdict(each) for name, each in settings.items()}}
    rows = [(name, setting.value, setting.by) for name, setting in settings.items()]
    return Answer(document, functools.partial(print_dace_config, FILE, rows))


@config.command(epilog=example('cmake -S . -B build -Dgtstub_ROOT="$(gtstub config cmake)"'))
def cmake() -> None:
    """Print the directory in which CMake finds gtstub."""
    click.echo(LIBRARIES / "cmake" / "gtstub")


@config.command(epilog=example('export PKG_CONFIG_PATH="$(gtstub config pkgconfig)"'))
def pkgconfig() -> None:
    """Print the directory in which pkg-config finds gtstub."""
    click.echo(LIBRARIES / "pkgconfig")


def _check(choice: Choice) -> str:
    """
    Raises ConfigError for an option that the backend does not know. Returns the name of the package that is missing for
    the check, or an empty text.
    """
    try:
        from gtstub.frameworks.gt4py.chosen import converted
    except ModuleNotFoundError as error:
        package = (error.name or "gtstub").partition(".")[0]
        if package == "gtstub":
            raise
        return package
    converted(choice)
    return ""


def _reason_to_json(reason: Reason) -> dict[str, Any]:
    overrode = None if reason.overrode is None else _reason_to_json(reason.overrode)
    return {**_setting_to_json(reason.setting), "overrode": overrode}


def _setting_to_json(setting: Setting) -> dict[str, Any]:
    return {
        "section": str(setting.section),
        "option": setting.option,
        "value": setting.value,
        "file": str(setting.file),
        "line": setting.line,
    }
