"""The command 'gtstub doctor'."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from gtstub.cli.options import example, json_options
from gtstub.cli.output import Answer, progress
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from gtstub.entries.toolchain.doctor import Check


CACHE = "cache"
"""The name of the checks of the cache's layers."""


@click.command(epilog=example("gtstub doctor", "gtstub doctor --jq '.checks[] | select(.ok | not) | .advice'"))
@json_options
def doctor() -> Answer:
    """
    Check the software of this machine and its caches.

    The exit code is 1 if something is missing that gtstub needs, or if no program can be loaded from a layer of the
    cache: others can write it, or its file system is mounted with the option noexec.
    """
    from gtstub.entries.toolchain.doctor import checks
    from gtstub.frameworks.dace.dace_config import configuration

    executable = configuration("cpu", "Release")["compiler.cpu.executable"]
    with progress("Trying the compilers"):
        found = (*(checks(executable.value, executable.by) if executable.value else checks()), *_layers())
    is_well = all(check.ok for check in found)
    document = {"ok": is_well, "checks": [dataclasses.asdict(check) for check in found]}
    return Answer(document, functools.partial(_print, found), 0 if is_well else 1)


def _layers() -> Iterator[Check]:
    """A check of each layer of the cache that exists, and of its code paths: whether entries are loaded from there."""
    from gtstub.entries.cache.inventory import code_paths
    from gtstub.entries.cache.mounts import check_loadable
    from gtstub.entries.cache.store import open_cache
    from gtstub.entries.toolchain.doctor import Check
    from gtstub.entries.trust import check_root
    from gtstub.errors import CacheError

    for layer in open_cache().layers:
        for place in (layer, *(layer / name for name in code_paths(layer))):
            try:
                check_root(place)
                check_loadable(place)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Check(CACHE, ok=False, found=str(place), advice=f"It cannot be read: {error.strerror}.")
            except CacheError as error:
                yield Check(CACHE, ok=False, found=str(place), advice=str(error))
            else:
                yield Check(CACHE, ok=True, found=str(place))


def _state(check: Check) -> str:
    if not check.ok:
        return "REFUSED" if check.name == CACHE else "MISSING"
    return "optional" if check.advice else "ok"


def _print(checks: Sequence[Check]) -> None:
    """Prints a row for each check, and the advice below the table."""
    rows = ((_state(check), check.name, check.found) for check in checks)
    table = make_table("", "check", "found", rows=rows)
    print_parts(table, "\n".join(f"{check.name}: {check.advice}" for check in checks if check.advice))
