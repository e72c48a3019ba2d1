"""The table and the JSON of 'gtstub cache list --times': how long the stages of each build took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gtstub.entries.cache.inventory import Item
from gtstub.entries.cache.names import described, told_apart
from gtstub.util.console import make_table, print_parts


def longest_first(items: Sequence[Item]) -> list[Item]:
    """The whole entries, those whose builds took longest first."""
    return sorted((item for item in items if item.manifest is not None), key=_whole, reverse=True)


def times_to_json(item: Item) -> dict[str, Any]:
    """The host and the seconds of a whole entry's build, and its stages as in the manifest."""
    assert item.manifest is not None
    built = item.manifest.built
    return {"host": built.host, "seconds": built.whole, "stages": [stage._asdict() for stage in built.stages]}


def print_times(items: Sequence[Item]) -> None:
    """Prints a row for each whole entry, the longest build first, and one with the sums."""
    shown = longest_first(items)
    stages = list(dict.fromkeys(name for item in shown for name in _stages(item)))
    table = make_table("key", "program", "compiled in", "build", *stages)
    told = told_apart(shown)
    for item in shown:
        seconds = map(_seconds, map(_stages(item).get, stages))
        table.add_row(item.key, item.name, described(item, told), _seconds(_whole(item)), *seconds)
    sums = [sum(_stages(item).get(name, 0.0) for item in shown) for name in stages]
    if shown:
        table.add_row("all", "", "", _seconds(sum(map(_whole, shown))), *map(_seconds, sums))
    notes = ["Times are in seconds. The stub is compiled while DaCe works, so that a build takes less than its stages."]
    if older := sum(not _stages(item) for item in shown):
        notes.append(f"Not known: the stages of {_count(older)} that an older gtstub built.")
    if left_out := len(items) - len(shown):
        notes.append(f"Left out: {_count(left_out)} that 'gtstub cache list' shows as broken or foreign.")
    print_parts(table, "\n".join(notes) if shown or left_out else "0 entries.")


def _whole(item: Item) -> float:
    return 0.0 if item.manifest is None else item.manifest.built.whole


def _stages(item: Item) -> Mapping[str, float]:
    """The seconds of the stages of a build by their names."""
    seconds: dict[str, float] = {}
    for stage in item.manifest.built.stages if item.manifest is not None else ():
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    return seconds


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _count(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries} entries"
