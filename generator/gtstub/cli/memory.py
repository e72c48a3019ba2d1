"""The command 'gtstub memory'."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gtstub.cli.entries import path_or_entry
from gtstub.cli.options import FILE, example, json_options, size_options
from gtstub.cli.output import Answer, progress

if TYPE_CHECKING:
    from gtstub.stub.sdfg.model import Sdfg


@click.command(
    epilog=example(
        "gtstub memory ENTRY --size Edge=30720 --size K=65 --set vertical_end=65",
        "gtstub memory program.sdfgz --set N=1000",
        "gtstub memory --cache --size Edge=30720 --size K=65",
        "gtstub memory ENTRY --size K=65 --jq '.uses[] | \"\\(.allocated) \\(.storage) \\(.bytes)\"'",
    )
)
@click.argument("path", metavar="[SDFG | ENTRY]", type=FILE, required=False)
@click.option(
    "--cache",
    "cache_dir",
    metavar="[DIR]",
    is_flag=False,
    flag_value="",
    help="Print a row for each entry of this cache, or of that of 'gtstub cache path'; or find ENTRY in it.",
)
@size_options
@json_options
def memory(
    path: Path | None, cache_dir: str | None, dimensions: Mapping[str, int], symbols: Mapping[str, int]
) -> Answer:
    """
    Print the memory that a program allocates for its transients.

    SDFG is a file that DaCe wrote, ENTRY a cache entry: its name (see 'gtstub cache -h'), or directory. Sizes are in
    bytes, and '?' if they are not known. An SDFG alone has no dimensions, so its symbols need '--set'. Of a cache, the
    entries whose calls allocate most are first.

    docs/memory.md explains the columns.
    """
    from gtstub.cli.sdfgs import exit_code_2
    from gtstub.cli.tables.memory import print_memory
    from gtstub.tools.memory.memory import memory as memory_of
    from gtstub.tools.memory.memory import memory_to_json

    if path is None:
        if cache_dir is None:
            raise click.UsageError("Give SDFG, ENTRY or '--cache'.")
        return _of_cache(cache_dir, dimensions, symbols)
    with exit_code_2():
        found_path = path_or_entry(path, Path(cache_dir) if cache_dir else None)
        sdfg, sizes = _read(found_path, dimensions, symbols)
        found = memory_of(sdfg, sizes)
    return Answer(memory_to_json(sdfg.name, sizes, found), functools.partial(print_memory, sdfg.name, found))


def _of_cache(directory: str, dimensions: Mapping[str, int], symbols: Mapping[str, int]) -> Answer:
    from gtstub.cli.sdfgs import entries, exit_code_2
    from gtstub.cli.tables.cache_memory import cache_memory_to_json, print_cache_memory
    from gtstub.entries.cache.inventory import inventory
    from gtstub.entries.cache.store import Cache, open_cache
    from gtstub.tools.memory.sizes import SharedSizes
    from gtstub.tools.report.memory import memory_of_entries

    sizes = SharedSizes(dimensions, symbols)
    with exit_code_2():
        if directory:
            entries(Path(directory))  # which refuses a directory without any
        items = inventory(Cache(Path(directory).absolute()) if directory else open_cache())
        with progress(f"Reading {len(items)} entries"):
            found = memory_of_entries(items, sizes)
        sizes.check()
    return Answer(cache_memory_to_json(found), functools.partial(print_cache_memory, found))


def _read(path: Path, dimensions: Mapping[str, int], symbols: Mapping[str, int]) -> tuple[Sdfg, Mapping[str, int]]:
    """
    An SDFG and the values of its symbols. Of an entry, the SDFG that DaCe has compiled: it contains the transients that
    DaCe has added.
    """
    from gtstub.entries.cache.entry import COMPILED_SDFG
    from gtstub.entries.cache.inspection import signatures
    from gtstub.stub.sdfg.read import SdfgError, read
    from gtstub.tools.memory.sizes import SizeError, symbol_sizes
    from gtstub.util.suggest import did_you_mean

    if path.is_dir():
        manifest, sdfg, program = signatures(path)
        if COMPILED_SDFG not in manifest.files:
            raise SdfgError(f"'{path}' keeps no '{COMPILED_SDFG}', because an older gtstub built it: build it again.")
        return read(path / COMPILED_SDFG), symbol_sizes(program, sdfg, dimensions, symbols)
    found = read(path)
    if dimensions:
        raise SizeError(f"'{path}' alone has no dimensions: give its cache entry, or values of symbols with '--set'.")
    for name in symbols:
        if name not in found.symbols:
            raise SizeError(f"The SDFG in '{path}' has no symbol '{name}'.{did_you_mean(name, sorted(found.symbols))}")
    return found, symbols
