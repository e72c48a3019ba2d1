"""Tables and JSON of 'gtstub cache': entries, their ingredients, and differences between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gtstub.entries.cache.counts import counts as counts_of
from gtstub.entries.cache.inventory import Item, age, code_paths
from gtstub.entries.cache.key import MISSING, Difference, flat
from gtstub.entries.cache.names import compiled_in, described, told_apart
from gtstub.entries.cache.store import Cache, Nearest
from gtstub.entries.cache.wording import cut, sides, whole
from gtstub.util.console import make_table, print_parts
from gtstub.util.quantity import as_size


def item_to_json(item: Item) -> dict[str, Any]:
    members = {name: getattr(item, name) for name in ("key", "name", "state", "problem", "bytes", "built", "used")}
    values = {"static": item.static, "compiled_in": compiled_in(item)}
    return {**members, **values, "path": str(item.path), "layer": str(item.layer)}


def difference_to_json(difference: Difference) -> dict[str, Any]:
    """The path and the two values of a difference. A missing value has no member."""
    sides = {"this": difference.ours, "nearest": difference.theirs}
    return {"path": difference.path, **{side: value for side, value in sides.items() if value is not MISSING}}


def print_items(cache: Cache, items: Sequence[Item]) -> None:
    """Prints the layers, a row for each entry, the problems of broken entries, and the total."""
    layers = {layer: "root" if layer == cache.root else f"shared {i}" for i, layer in enumerate(cache.layers)}
    table = make_table("key", "program", "compiled in", "size", "age", "last use", "layer", "state")
    told = told_apart(items)
    for item in items:
        used = _age(item.used) if item.layer == cache.root else ""
        size, built = as_size(item.bytes), _age(item.built)
        table.add_row(item.key, item.name, described(item, told), size, built, used, layers[item.layer], item.state)
    problems = "\n".join(item.problem for item in items if item.state == "broken")
    total = f"{_total(items)}."
    if any(counts := counts_of(cache.root)):
        hits, misses = "hit" if counts.hits == 1 else "hits", "miss" if counts.misses == 1 else "misses"
        total += f" {counts.hits} {hits}, {counts.misses} {misses}."
    print_parts("\n".join(f"{name}: {layer}" for layer, name in layers.items()), table, problems, total)


def print_item(item: Item) -> None:
    """Prints the ingredients of an entry, the values compiled into it, its files, and its requirements."""
    head = f"'{item.path}', of program '{item.name}': {as_size(item.bytes)}, {item.state}."
    manifest = item.manifest
    if manifest is None:
        print_parts(head, item.problem)
        return
    values = ((whole(path), cut(whole(value))) for path, value in flat("", manifest.ingredients))
    ingredients = make_table("ingredient", "value", rows=values)
    constants = manifest.baked.items()
    baked = make_table("compiled in", "value", rows=((whole(name), cut(whole(value))) for name, value in constants))
    rows = ((name, str(file.bytes), file.sha256) for name, file in manifest.files.items())
    files = make_table("file", "bytes", "SHA-256", rows=rows)
    built, machine = manifest.built, manifest.machine
    remarks = [f"Built {_age(built.time)} ago on '{built.host}', in {built.seconds:.1f} s."]
    if machine.cpu:
        remarks.append(f"Needs a CPU with {', '.join(machine.cpu)}.")
    if machine.arch or machine.device:
        remarks.append(f"Built for {' '.join(filter(None, (machine.device, machine.arch)))}.")
    print_parts(head, ingredients, baked, files, "\n".join(remarks))


def print_removed(items: Sequence[Item], leftovers: int, dry_run: bool) -> None:
    rows = ((item.key, as_size(item.bytes), _age(item.used)) for item in items)
    verb = "would be removed" if dry_run else "removed"
    total = f"{_total(items)}, {verb}."
    if leftovers:
        total += f" {leftovers} {'leftover' if leftovers == 1 else 'leftovers'} of killed builders {verb}."
    print_parts(make_table("key", "size", "last use", rows=rows), total)


def print_places(places: Sequence[tuple[Path, str]]) -> None:
    table = make_table("layer", "path", "from", "")
    for number, (path, origin) in enumerate(places):
        name = f"shared {number}" if number else "root"
        table.add_row(name, str(path), origin, "" if path.is_dir() else "missing")
        for code_path in code_paths(path):
            table.add_row(f"{name}, code path", str(path / code_path), "", "")
    print_parts(table)


def print_differences(item: Item, nearest: Nearest | None) -> None:
    """Prints a row for each ingredient that differs."""
    head = f"'{item.key}', built {_age(item.built)} ago."
    if nearest is None:
        print_parts(head, f"The cache has no older entry of program '{item.name}' to compare it with.")
        return
    rows = ((whole(difference.path), *sides(difference)) for difference in nearest.differences)
    table = make_table("ingredient", "this", "nearest", rows=rows)
    other = f"Nearest: '{nearest.entry.key}', built {_age(nearest.manifest.built.time)} ago."
    print_parts(f"{head}\n{other}", table)


def _total(items: Sequence[Item]) -> str:
    return f"{len(items)} {'entry' if len(items) == 1 else 'entries'}, {as_size(sum(item.bytes for item in items))}"


def _age(time: float) -> str:
    seconds = age(time)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
