"""The commands 'gtstub cache': they list, explain, verify, remove and move cache entries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from gtstub import settings
from gtstub.cli.entries import entry_in
from gtstub.cli.options import FILE, cache_option, example, json_options
from gtstub.cli.output import Answer, progress
from gtstub.cli.tables import cache as tables
from gtstub.entries.cache.cleanup import leftovers, sweep
from gtstub.entries.cache.counts import counts
from gtstub.entries.cache.inventory import code_paths, inventory
from gtstub.entries.cache.names import named
from gtstub.entries.cache.prune import remove, unwanted
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.errors import CacheError
from gtstub.util.quantity import duration, size

NAMES = example(
    "smooth                  a program; of several entries the newest one of this machine",
    "smooth@Edge.size=753    with a value that was compiled in; several have a comma between them",
    "smooth@0b12             with the beginning of the digest",
    "smooth-0b12             the beginning of a key that no other key has",
    title="Names of entries",
)


@click.group(
    name="cache",
    epilog=f"{NAMES}\n\n{example('gtstub cache why graupel_run', 'gtstub cache prune --older-than 30d')}",
)
def cache() -> None:
    """
    Show, verify and clean up the cache.

    An entry is a directory with all files of one compiled program. Its name, the key, consists of the program's name
    and a digest of everything that the entry was made from.
    """


def _open(_context: click.Context, _parameter: click.Parameter, directory: Path | None) -> Cache:
    return open_cache() if directory is None else Cache(directory.absolute())


opened_option = cache_option("opened", callback=_open)


def _number(parse: Callable[[str], float]) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


@cache.command(
    name="list",
    epilog=example(
        "gtstub cache list",
        "gtstub cache list --times",
        "gtstub cache list --jq '.entries[] | select(.bytes > 1e6) | .key'",
    ),
)
@click.option("--times", is_flag=True, help="Print the seconds of the stages of each build, the longest build first.")
@opened_option
@json_options
def list_(times: bool, opened: Cache) -> Answer:
    """
    List all entries.

    Each row has what tells an entry apart from the others of its program, of what was compiled in, then its static
    arguments; the size, the age, the last use (known to the hour), the layer and the state. An entry is 'broken' if a
    file is missing or too short, and 'foreign' if another version of gtstub made it. 'verify' reads all files.

    A hit is a program that a run found in the cache when it was set up, a miss one that it built. They are counted in
    the files '.hits' and '.misses' of the first layer, except in mode Run; to count anew, remove these files.
    """
    items = inventory(opened)
    if times:
        from gtstub.cli.tables.times import longest_first, print_times, times_to_json

        timed = [{**tables.item_to_json(item), **times_to_json(item)} for item in longest_first(items)]
        return Answer({"entries": timed}, functools.partial(print_times, items))
    document = {"entries": [tables.item_to_json(item) for item in items], **counts(opened.root)._asdict()}
    return Answer(document, functools.partial(tables.print_items, opened, items))


@cache.command(
    epilog=example("gtstub cache show diffuse-0b", "gtstub cache show diffuse-0b --jq .manifest.ingredients")
)
@click.argument("key", metavar="ENTRY")
@opened_option
@json_options
def show(key: str, opened: Cache) -> Answer:
    """
    Show the ingredients of an entry.

    Prints all ingredients of the key, one a line, the values that were compiled in, the requirements on the machine,
    and the files. The JSON document has the whole manifest (docs/formats.md). 'gtstub show ENTRY' shows how the
    program is called.
    """
    item = entry_in(opened, key)
    manifest = {} if item.manifest is None else item.manifest.to_json()
    return Answer({**tables.item_to_json(item), "manifest": manifest}, functools.partial(tables.print_item, item))


@cache.command(epilog=example("gtstub cache verify", "gtstub cache verify diffuse-0b"))
@click.argument("keys", metavar="[ENTRY]...", nargs=-1)
@opened_option
@json_options
def verify(keys: tuple[str, ...], opened: Cache) -> Answer:
    """
    Read every file of the given entries, or of all entries.

    If an entry is broken, the command names the file and exits with 6. gtstub never loads a broken entry; it builds the
    program again when it is needed. Entries of other versions of gtstub are skipped.
    """
    items = [entry_in(opened, key) for key in keys] if keys else inventory(opened)
    items = [item for item in items if item.state != "foreign"]
    problems, entries = [], []
    with progress(f"Reading {len(items)} entries"):
        for item in items:
            problem = ""
            try:
                item.entry.verify()
            except CacheError as error:
                problem = str(error)
                problems.append(problem)
            entries.append({**tables.item_to_json(item), "state": "broken" if problem else "ok", "problem": problem})

    def print_problems() -> None:
        for problem in problems:
            click.echo(problem, err=True)
        click.echo(f"{len(items) - len(problems)} of {len(items)} entries are intact.")

    return Answer({"ok": not problems, "entries": entries}, print_problems, 6 if problems else 0)


@cache.command(
    epilog=example(
        "gtstub cache prune --older-than 30d", "gtstub cache prune --max-size 2GiB --dry-run", "gtstub cache prune"
    )
)
@click.option("--older-than", metavar="TIME", type=_number(duration), help="Time since the last use: 12h, 30d, 4w.")
@click.option("--max-size", metavar="SIZE", type=_number(size), help="Size of all kept entries: 500MB, 2GiB.")
@click.option("--dry-run", is_flag=True, help="Remove nothing, and list the entries.")
@opened_option
@json_options
def prune(older_than: float | None, max_size: float | None, dry_run: bool, opened: Cache) -> Answer:
    """
    Remove entries that were not used for a long time.

    First, entries that were not used for TIME are removed. Then the least recently used ones are removed until the rest
    takes at most SIZE. Files that killed builders left behind are always removed. Shared layers are not changed.
    """
    left = list(leftovers(opened.root))
    items = unwanted(inventory(Cache(opened.root)), older_than, max_size)
    if not dry_run:
        with progress(f"Removing {len(items)} entries"):
            sweep(opened.root)
            items = [item for item in items if remove(opened, item)]
    removed = [tables.item_to_json(item) for item in items]
    document = {"dry_run": dry_run, "entries": removed, "leftovers": [str(path) for path in left]}
    return Answer(document, functools.partial(tables.print_removed, items, len(left), dry_run))


@cache.command(epilog=example("gtstub cache export diffuse-0b diffuse.tar.gz"))
@click.argument("key", metavar="ENTRY")
@click.argument("file", type=FILE)
@opened_option
def export(key: str, file: Path, opened: Cache) -> None:
    """
    Write an entry to one file, to be moved elsewhere.

    The file is a compressed tar file. The same entry always gives the same bytes.
    """
    from gtstub.entries.cache.bundle import pack
    from gtstub.util.atomic import replacing

    item = entry_in(opened, key)
    with replacing(file) as aside, aside.open("wb") as stream:
        pack(item.entry, stream)
    click.echo(f"'{file}' holds the cache entry '{item.key}'.")


@cache.command(name="import", epilog=example("gtstub cache import diffuse.tar.gz"))
@click.argument("file", type=FILE)
@opened_option
def import_(file: Path, opened: Cache) -> None:
    """
    Add an entry that 'export' wrote.

    The entry is verified first, and a file with any other content is refused. Whether this machine can run the entry is
    checked when it is loaded.

    Programs that load the entry run its code, and nothing in the file says who has made it. To sign files and to check
    signatures, use 'ssh-keygen -Y'.
    """
    from gtstub.entries.cache.bundle import unpack

    with file.open("rb") as stream:
        entry = unpack(opened, stream)
    click.echo(f"'{entry.path}' is a cache entry.")


@cache.command(epilog=example("gtstub cache path", "gtstub cache path graupel_run", "gtstub cache path --jq .root"))
@click.argument("entry", metavar="[ENTRY]", required=False)
@opened_option
@json_options
def path(entry: str | None, opened: Cache) -> Answer:
    """
    Print the directory of an entry, or the directories of the cache.

    With ENTRY, such as the name of a program, the command prints the directory of that entry. If a program has several
    entries, a line on stderr says which one was taken, and how to name another. It refuses an entry that somebody else
    could have written (docs/trust.md).

    Without it the command prints all layers of the cache, and the setting that each comes from. Ranks that run
    different code have a directory each in these. Such a directory is itself a cache, which '--cache' can name.
    """
    if entry is not None:
        item = entry_in(opened, entry)
        item.entry.check_trusted()  # What is copied from there belongs to this user, and is loaded.
        return Answer(tables.item_to_json(item), functools.partial(click.echo, item.path))
    root_from = settings.cache_dir()[1] if opened == open_cache() else "--cache"
    places = [(opened.root, root_from), *((layer, settings.SHARED_CACHE_DIR) for layer in opened.shared)]
    layers = [
        {"path": str(layer), "from": origin, "exists": layer.is_dir(), "code_paths": code_paths(layer)}
        for layer, origin in places
    ]
    return Answer({"root": str(opened.root), "layers": layers}, functools.partial(tables.print_places, places))


@cache.command(
    epilog=example("gtstub cache why graupel_run", "gtstub cache why graupel_run --jq '.differences[].path'")
)
@click.argument("program", metavar="ENTRY")
@opened_option
@json_options
def why(program: str, opened: Cache) -> Answer:
    """
    Say why a program was compiled again.

    Compares ENTRY, of a program the newest entry, with an older entry of the same program: if possible, one with the
    same values of static arguments; among those, the one that differs in the fewest ingredients. Without these
    differences nothing would have been compiled.
    """
    item = named(opened, program)[0]
    if item.manifest is None:
        raise CacheError(item.problem)
    nearest = opened.nearest(item.name, item.manifest.ingredients, before=item.built)
    differences = [] if nearest is None else [tables.difference_to_json(each) for each in nearest.differences]
    document = {"key": item.key, "nearest": nearest and nearest.entry.key, "differences": differences}
    return Answer(document, functools.partial(tables.print_differences, item, nearest))
