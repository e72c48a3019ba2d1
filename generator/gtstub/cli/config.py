"""
'gtstub config': which backend and options tables of backends give a program, which line decided what, the DaCe
configuration of builds, and where other build systems find the runtime.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from gtstub.backends.choice import Choice, Reason, Tag, choose
from gtstub.backends.tables import Setting, load_tables, table_files
from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json
from gtstub.cli.tables.backends import print_choice, print_dace_config, print_tables
from gtstub.install import LIBRARIES
from gtstub.signature.model import Device
from gtstub.toolchain.arch import arch as arch_of

BUILD_TYPES = ("Debug", "Release", "RelWithDebInfo", "MinSizeRel")


@click.group(epilog=example("gtstub config explain graupel_run --tag GPU"))
def config() -> None:
    """
    Say which backend compiles a program, how, and why.

    Tables in TOML decide the backend, gtstub's own and yours (docs/backends.md). 'cmake' and 'pkgconfig' say where
    other build systems find the runtime (docs/cmake.md).
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
@click.option("--arch", help="As 'zen4' or 'sm_90'.  [default: this machine's]")
@json_options
def explain(program: str, tag: Tag, arch: str | None, as_json: Json | None) -> None:
    """
    Say which line of which table decided what for a program.

    Printed are the options of the backend with their values, where each was decided, and what that line overrode.
    Options that no table names are the backend's own defaults. What the backend does not know is an error, as it is
    when a program is compiled; that needs gt4py.
    """
    tag = Tag(tag)
    choice = choose(program, tag, arch_of(tag.device) if arch is None else arch, load_tables())
    missing = _check(choice)
    if as_json is not None:
        as_json.print(_to_json(choice) | {"checked": not missing})
    else:
        note = f"The options were not checked: '{missing}' is not installed." if missing else ""
        print_choice(choice, table_files(), note)


@config.command(epilog=example("gtstub config show"))
@json_options
def show(as_json: Json | None) -> None:
    """Say where tables are looked for, and what all of them say."""
    if as_json is not None:
        files = [{"from": who, "file": str(file), "exists": file.exists()} for who, file in table_files()]
        settings = [_setting_to_json(setting) for table in load_tables() for setting in table.settings]
        as_json.print({"files": files, "settings": settings})
    else:
        print_tables(table_files(), load_tables())


@config.command(
    epilog=example("gtstub config dace", "gtstub config dace --jq '.settings.\"compiler.cpu.args\"'"),
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda", "rocm"]),
    default="cpu",
    show_default=True,
    help="What builds are for.",
)
@click.option(
    "--build-type",
    metavar="TYPE",
    type=click.Choice(BUILD_TYPES),
    default="Release",
    show_default=True,
    help=f"As CMake names it, one of {', '.join(BUILD_TYPES)}.",
)
@json_options
def dace(device: Device, build_type: str, as_json: Json | None) -> None:
    """
    Print the DaCe configuration of builds, and what decided it.

    It is gtstub's own (docs/dace-config.md). No file of DaCe's has a part in it. What 'make_backend' and tables of
    backends say of a program comes on top; 'gtstub config explain PROGRAM' has it.
    """
    from gtstub.frameworks.dace.dace_config import FILE, configuration

    settings = configuration(device, build_type)
    if as_json is not None:
        found = {name: dataclasses.asdict(setting) for name, setting in settings.items()}
        as_json.print({"file": str(FILE), "settings": found})
    else:
        print_dace_config(FILE, [(name, setting.value, setting.by) for name, setting in settings.items()])


@config.command(epilog=example('cmake -S . -B build -Dgtstub_ROOT="$(gtstub config cmake)"'))
def cmake() -> None:
    """Print the directory in which CMake finds gtstub."""
    click.echo(LIBRARIES / "cmake" / "gtstub")


@config.command(epilog=example('export PKG_CONFIG_PATH="$(gtstub config pkgconfig)"'))
def pkgconfig() -> None:
    """Print the directory in which pkg-config finds gtstub."""
    click.echo(LIBRARIES / "pkgconfig")


def _check(choice: Choice) -> str:
    """Raises ConfigError for an option that the backend does not know. Where it cannot: the package that is missing."""
    try:
        from gtstub.frameworks.gt4py.chosen import converted
    except ModuleNotFoundError as error:
        package = (error.name or "gtstub").partition(".")[0]
        if package == "gtstub":
            raise
        return package
    converted(choice)
    return ""


def _to_json(choice: Choice) -> dict[str, Any]:
    return {
        "program": choice.program,
        "tag": choice.tag,
        "arch": choice.arch,
        "backend": choice.backend,
        "device": choice.device,
        "options": choice.options,
        "reasons": [_reason_to_json(reason) for reason in choice.reasons],
    }


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
