"""'gtstub cache': what the cache holds, what that was made of, whether it is whole, and how it goes elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gtstub import settings
from gtstub.cache.store import Cache, open_cache
from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json, progress


@click.group(name="cache", epilog=example("gtstub cache why graupel_run", "gtstub cache prune --older-than 30d"))
def cache() -> None:
    """
    Say what the cache holds, and keep it small and whole.

    An entry is a directory with everything that one compiled program consists of. Its name, the key, is that of the
    program and a digest of all that the entry was made of. The beginning of a key will do where no other one has it.
    """


def _cache_option[F: Callable[..., Any]](command: F) -> F:
    def convert(_context: click.Context, _parameter: click.Parameter, directory: Path | None) -> Cache:
        return open_cache(_beside_gt4py()) if directory is None else Cache(directory.absolute())

    return click.option(
        "--cache",
        "opened",
        metavar="DIR",
        type=click.Path(path_type=Path),
        callback=convert,
        help="Another cache than that of this environment ('gtstub cache path').",
    )(command)


def _beside_gt4py() -> Path | None:
    """Where a backend has its entries that persist, where nothing names another place."""
    directory = Path(os.environ.get("GT4PY_BUILD_CACHE_DIR", "")) / ".gt4py_cache" / "gtstub"
    return directory if directory.is_dir() else None


def _number(parse: Callable[[str], float]) -> Callable[[click.Context, click.Parameter, str | None], float | None]:
    def convert(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


def _duration(text: str) -> float:
    from gtstub.cache.prune import duration

    return duration(text)


def _size(text: str) -> float:
    from gtstub.cache.prune import size

    return size(text)


@cache.command(
    name="list",
    epilog=example("gtstub cache list", "gtstub cache list --jq '.entries[] | select(.bytes > 1e6) | .key'"),
)
@_cache_option
@json_options
def list_(opened: Cache, as_json: Json | None) -> None:
    """
    List all entries.

    Printed are size, age and last use, which is known to the day, the layer, and whether the entry is whole: 'broken'
    where a file is missing or too short, 'foreign' where another version of gtstub made it. 'verify' reads all files.
    """
    from gtstub.cache.inventory import inventory
    from gtstub.cli.tables.cache import item_to_json, print_items

    items = inventory(opened)
    if as_json is not None:
        as_json.print({"entries": [item_to_json(item) for item in items]})
    else:
        print_items(opened, items)


@cache.command(
    epilog=example("gtstub cache show diffuse-0b", "gtstub cache show diffuse-0b --jq .manifest.ingredients")
)
@click.argument("key")
@_cache_option
@json_options
def show(key: str, opened: Cache, as_json: Json | None) -> None:
    """
    Show what the key of an entry is made of.

    Printed are the ingredients, one a line, the values that were compiled in, what the machine must have, and the
    files. JSON has the whole manifest (docs/formats.md). 'gtstub show DIR' shows how the program is called.
    """
    from gtstub.cache.inventory import inventory, pick
    from gtstub.cli.tables.cache import item_to_json, print_item

    item = pick(inventory(opened), key)
    if as_json is not None:
        manifest = {} if item.manifest is None else item.manifest.to_json()
        as_json.print({**item_to_json(item), "manifest": manifest})
    else:
        print_item(item)


@cache.command(epilog=example("gtstub cache verify", "gtstub cache verify diffuse-0b"))
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@_cache_option
@json_options
def verify(keys: tuple[str, ...], opened: Cache, as_json: Json | None) -> None:
    """
    Read every file of entries, of all where no KEY is given.

    Exits with 6 where one is broken, and says which file. A broken entry is never loaded; it is built again when its
    program is needed. Entries of other versions of gtstub are passed over.
    """
    from gtstub.cache.inventory import inventory, pick
    from gtstub.cli.tables.cache import item_to_json
    from gtstub.errors import CacheError

    items = inventory(opened)
    if keys:
        items = [pick(items, key) for key in keys]
    items = [item for item in items if item.state != "foreign"]
    problems = {}
    with progress(f"Reading {len(items)} entries"):
        for item in items:
            try:
                item.entry.verify()
            except CacheError as error:
                problems[item.path] = str(error)
    if as_json is not None:
        checked = [(item, problems.get(item.path, "")) for item in items]
        entries = [
            {**item_to_json(item), "state": "broken" if problem else "ok", "problem": problem}
            for item, problem in checked
        ]
        as_json.print({"ok": not problems, "entries": entries})
    else:
        for problem in problems.values():
            click.echo(problem, err=True)
        click.echo(f"{len(items) - len(problems)} of {len(items)} entries are whole.")
    click.get_current_context().exit(6 if problems else 0)


@cache.command(
    epilog=example(
        "gtstub cache prune --older-than 30d", "gtstub cache prune --max-size 2GiB --dry-run", "gtstub cache prune"
    )
)
@click.option(
    "--older-than", metavar="TIME", callback=_number(_duration), help="As 12h, 30d or 4w, since the last use."
)
@click.option("--max-size", metavar="SIZE", callback=_number(_size), help="As 500MB or 2GiB, of what is kept.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@_cache_option
@json_options
def prune(
    older_than: float | None,
    max_size: float | None,
    dry_run: bool,
    opened: Cache,
    as_json: Json | None,
) -> None:
    """
    Remove entries that were not used for long.

    Removed is what was not used for TIME, and then what was not used for longest until the rest has SIZE. What killed
    builders left behind is removed in any case. Shared layers are left alone.
    """
    from gtstub.cache.cleanup import leftovers, sweep
    from gtstub.cache.prune import remove, unwanted
    from gtstub.cli.tables.cache import item_to_json, print_removed

    left = list(leftovers(opened.root))
    items = unwanted(opened, older_than, max_size)
    if not dry_run:
        with progress(f"Removing {len(items)} entries"):
            sweep(opened.root)
            items = [item for item in items if remove(opened, item)]
    if as_json is not None:
        removed = [item_to_json(item) for item in items]
        as_json.print({"dry_run": dry_run, "entries": removed, "leftovers": [str(path) for path in left]})
    else:
        print_removed(items, len(left), dry_run)


@cache.command(epilog=example("gtstub cache export diffuse-0b diffuse.tar.gz"))
@click.argument("key")
@click.argument("file", type=click.Path(path_type=Path))
@_cache_option
def export(key: str, file: Path, opened: Cache) -> None:
    """
    Write an entry to one file, to be carried elsewhere.

    The file is a compressed tar file. The same entry gives the same bytes.
    """
    from gtstub.cache.bundle import pack
    from gtstub.cache.inventory import inventory, pick
    from gtstub.util.atomic import replacing

    item = pick(inventory(opened), key)
    with replacing(file) as aside, aside.open("wb") as stream:
        pack(item.entry, stream)
    click.echo(f"'{file}' holds the cache entry '{item.key}'.")


@cache.command(name="import", epilog=example("gtstub cache import diffuse.tar.gz"))
@click.argument("file", type=click.Path(path_type=Path))
@_cache_option
def import_(file: Path, opened: Cache) -> None:
    """
    Publish an entry that 'export' wrote.

    It is verified first; a file that holds anything else is refused. What the machine lacks is found out when the entry
    is loaded.
    """
    from gtstub.cache.bundle import unpack

    with file.open("rb") as stream:
        entry = unpack(opened, stream)
    click.echo(f"'{entry.path}' is a cache entry.")


@cache.command(epilog=example("gtstub cache path", "gtstub cache path graupel_run", "gtstub cache path --jq .root"))
@click.argument("program", metavar="[PROGRAM | KEY]", required=False)
@_cache_option
@json_options
def path(program: str | None, opened: Cache, as_json: Json | None) -> None:
    """
    Say where an entry lies, or where entries are looked for.

    Of PROGRAM, or KEY, the directory of its entry is printed, and nothing else. Where a program has several entries,
    they are listed, each with what tells it apart, and one has to be named by its key.

    Without PROGRAM all layers of the cache are printed, and what says so. Ranks that run different code have a
    directory each in these, which is a cache of its own: '--cache' looks into it.
    """
    if program is not None:
        _print_place(program, opened, as_json)
        return
    beside = _beside_gt4py()
    default = "the user's cache directory" if beside is None else "gt4py's cache"
    _, own = settings.cache_dir() or ("", default)
    root_from = own if opened == open_cache(beside) else "--cache"
    places = [(opened.root, root_from), *((layer, settings.SHARED_CACHE_DIR) for layer in opened.shared)]
    if as_json is not None:
        from gtstub.cache.inventory import code_paths

        layers = [
            {"path": str(layer), "from": said_by, "exists": layer.is_dir(), "code_paths": code_paths(layer)}
            for layer, said_by in places
        ]
        as_json.print({"root": str(opened.root), "layers": layers})
    else:
        from gtstub.cli.tables.cache import print_places

        print_places(places)


def _print_place(program: str, opened: Cache, as_json: Json | None) -> None:
    from gtstub.cache.inventory import inventory, pick_of_program
    from gtstub.cli.tables.cache import item_to_json

    item = pick_of_program(inventory(opened), program)
    if as_json is not None:
        as_json.print(item_to_json(item))
    else:
        click.echo(item.path)


@cache.command(
    epilog=example("gtstub cache why graupel_run", "gtstub cache why graupel_run --jq '.differences[].path'")
)
@click.argument("program", metavar="PROGRAM | KEY")
@_cache_option
@json_options
def why(program: str, opened: Cache, as_json: Json | None) -> None:
    """
    Say why a program was compiled again.

    Compared are the newest entry of PROGRAM, or that of KEY, and the entry of the same program that differs from it in
    the fewest ingredients: had these not differed, nothing would have been compiled.
    """
    from gtstub.cache.inventory import inventory, pick
    from gtstub.cli.tables.cache import difference_to_json, print_differences

    items = [item for item in inventory(opened) if item.state == "ok"]
    newest = max((item for item in items if item.name == program), key=lambda item: item.built, default=None)
    item = newest or pick(items, program)
    nearest = None
    if item.manifest is not None:
        nearest = opened.nearest(item.name, item.manifest.ingredients, but=item.key)
    if as_json is not None:
        different = [] if nearest is None else list(map(difference_to_json, nearest.differences))
        key = None if nearest is None else nearest.entry.key
        as_json.print({"key": item.key, "nearest": key, "differences": different})
    else:
        print_differences(item, nearest)
