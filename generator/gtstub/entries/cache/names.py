"""
The entries that users name. A name is that of a program, or the beginning of a key. After '@' it has values that were
compiled in, or the beginning of the digest in a key: 'smooth', 'smooth-0b', 'smooth@Edge.size=753', 'smooth@0b'.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.entries.cache.entry import unsupported
from gtstub.entries.cache.inventory import Item, inventory
from gtstub.entries.cache.key import flat, short_name
from gtstub.entries.cache.wording import cut, whole
from gtstub.errors import CacheError
from gtstub.util.canonical import canonical
from gtstub.util.suggest import did_you_mean

if TYPE_CHECKING:
    from gtstub.entries.cache.store import Cache

MOST_LISTED = 8
"""The most names that a message lists."""

MOST_INGREDIENTS = 2
"""The most ingredients that tell entries apart which have the same values compiled in."""

SHORTEST_DIGEST = 4
"""The fewest characters of a digest that a message proposes."""

LONGEST_WORDS = 60
"""The most characters of values that a message proposes after '@'."""

_DIGEST = re.compile(r"([0-9a-f]{8})[0-9a-f]{56}")


class UnknownNameError(CacheError):
    """No entry has the name, whatever follows '@'."""


def named(cache: Cache, text: str) -> list[Item]:
    """
    The entries that `text` names, those that this machine can run first, and of these the newest. A program's name
    comes before the beginning of a key. Raises CacheError if there is none, or if several keys begin with `text`.
    """
    items = inventory(cache)
    name, at, given = text.partition("@")
    found = list({item.key: item for item in reversed(_of_program(items, name))}.values())
    if not found:
        found = [_pick(items, name, cache.root)]
    for part in re.split(r",(?=[^,=]+=)", given) if at else ():
        found = _narrowed(found, part)
    return sorted(found, key=_usable_and_new, reverse=True) if len(found) > 1 else found


def choice(items: Sequence[Item]) -> str:
    """The sentences that say that the first of several entries was taken, and how to name another."""
    item, *others = items
    selectors = _selectors(items)
    listed = [f"'{selectors[other.key]}'" for other in others[:MOST_LISTED]]
    if len(others) > MOST_LISTED:
        listed.append("one of those that 'gtstub cache list' lists")
    newest = "the newest of this machine" if _usable_and_new(item)[0] else "the newest"
    return (
        f"Program '{item.name}' has {len(items)} entries. Taken: {newest}, '{selectors[item.key]}'. To take"
        f" another, name {' or '.join(listed)}."
    )


def compiled_in(item: Item) -> dict[str, Any]:
    """What was compiled into a whole entry, by the names that users know: values, sizes, and the domains of fields."""
    if item.manifest is None:
        return {}
    domains = item.manifest.ingredients.get("static_domains")
    named = {name: _domain(each) for name, each in domains.items()} if isinstance(domains, Mapping) else {}
    return {**item.manifest.baked, **named}


def _domain(described: Any) -> Any:
    """The domain of a field as 'Edge[0:753],K[0:10]'; what is described in another way stays as it is."""
    match described:
        case {"dims": {"<tuple>": [*dims]}, "ranges": {"<tuple>": [*ranges]}} if all(
            isinstance(each, Mapping) for each in ranges
        ):
            ends = (f"[{each.get('start')}:{each.get('stop')}]" for each in ranges)
            return ",".join(str(dim).partition("[")[0] + end for dim, end in zip(dims, ends, strict=False))
        case [*elements]:
            return [_domain(each) for each in elements]
    return described


def told_apart(items: Sequence[Item]) -> dict[str, dict[str, Any]]:
    """
    By key, the values that tell an entry apart from the others of its program: what was compiled in, and for those that
    do not differ in it the first ingredients in which they do. The names are those that `named` takes.
    """
    told: dict[str, dict[str, Any]] = {}
    for program in _grouped(items, lambda item: item.name):
        told |= _differing({item.key: compiled_in(item) for item in program})
    for group in _grouped(items, lambda item: (item.name, canonical(told[item.key]))):
        for key, those in _differing({item.key: _ingredients(item) for item in group}).items():
            told[key].update(sorted(those.items(), key=lambda pair: _is_digest(pair[1]))[:MOST_INGREDIENTS])
    return told


def described(item: Item, told: Mapping[str, Mapping[str, Any]]) -> str:
    """What was compiled in and tells an entry apart, its static arguments, and the rest, in a line of some length."""
    apart, inside = told.get(item.key, {}), compiled_in(item)
    values = {**{name: apart[name] for name in apart if name in inside}, **item.static, **apart}
    return cut(", ".join(f"{whole(name)}={_shown(value)}" for name, value in values.items()))


def _selectors(items: Sequence[Item]) -> dict[str, str]:
    """By the keys of entries of one program, the short name that means none of the others."""
    words = {key: _words(values) for key, values in _differing({item.key: compiled_in(item) for item in items}).items()}
    counts = Counter(words.values())
    digests = {item.key: _digest(item) for item in items}
    selectors = {}
    for item in items:
        if not (after := words[item.key]) or counts[after] > 1:
            others = [digest for key, digest in digests.items() if key != item.key]
            own = digests[item.key]
            lengths = range(SHORTEST_DIGEST, len(own))
            after = own[: next((n for n in lengths if not any(each.startswith(own[:n]) for each in others)), len(own))]
        selectors[item.key] = f"{item.name}@{after}"
    return selectors


def _pick(items: Sequence[Item], prefix: str, root: Path) -> Item:
    """The one entry whose key is or begins with `prefix`. Of several layers with this key, the first one counts."""
    found = {item.key: item for item in reversed(items) if prefix and item.key.startswith(prefix)}
    if not found:
        known = sorted({item.name for item in items})
        hint = did_you_mean(prefix, known) if prefix and known else ""
        if hint.startswith(" Known:") and len(known) > MOST_LISTED:
            hint = ""
        rest = f".{hint}" if hint else ": 'gtstub cache list' lists its entries." if known else ": it is empty."
        raise UnknownNameError(f"The cache '{root}' has no entry '{prefix}'{rest}")
    if len(found) > 1 and prefix not in found:
        raise CacheError(f"The keys of {len(found)} entries begin with '{prefix}': '{"', '".join(sorted(found))}'.")
    return found.get(prefix) or found.popitem()[1]


def _of_program(items: Sequence[Item], name: str) -> list[Item]:
    """The whole entries of a program. Their keys begin with its name, unless somebody has renamed their directories."""
    likely = [item for item in items if item.key.startswith(short_name(name))] or items
    return [item for item in likely if item.name == name and item.state == "ok"]


def _usable_and_new(item: Item) -> tuple[bool, float]:
    return item.manifest is not None and not unsupported(item.manifest), item.built


def _narrowed(items: Sequence[Item], part: str) -> list[Item]:
    """The entries with a value NAME=VALUE, or whose digest begins with `part`."""
    name, equals, value = part.partition("=")
    program = items[0].name
    if not equals:
        fitting = [item for item in items if part and (_digest(item).startswith(part) or item.key.startswith(part))]
        if not fitting:
            raise CacheError(f"No key of an entry of program '{program}' continues with '{part}'.{_listed(items)}")
        return fitting
    values = [{**_ingredients(item), **compiled_in(item)} for item in items]
    if not any(name in those for those in values):
        known = list(dict.fromkeys(known for item in items for known in compiled_in(item)))
        hint = did_you_mean(name, known) if known else " Nothing was compiled into it that has a name."
        raise CacheError(f"'{name}' is not compiled into program '{program}'.{hint}")
    fitting = [item for item, those in zip(items, values, strict=True) if name in those and _is(those[name], value)]
    if not fitting:
        raise CacheError(f"Program '{program}' has no entry with {name}={value}.{_listed(items)}")
    return fitting


def _listed(items: Sequence[Item]) -> str:
    """The end of a message: a line for each entry, the newest first."""
    told = told_apart(items)
    lines = []
    for item in sorted(items, key=lambda item: item.built, reverse=True)[:MOST_LISTED]:
        built = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item.built))
        lines.append(f"  {item.key}: " + ", ".join(filter(None, (f"built {built}", described(item, told)))))
    if len(items) > MOST_LISTED:
        lines.append(f"  and {len(items) - MOST_LISTED} more")
    return "\n".join((" Its entries:", *lines))


def _grouped(items: Sequence[Item], key: Callable[[Item], Hashable]) -> Collection[list[Item]]:
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.values()


def _differing(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By key, those of the values that differ, or that some lack."""
    names = dict.fromkeys(name for those in values.values() for name in those)
    texts = {name: {canonical(those[name]) if name in those else b"" for those in values.values()} for name in names}
    differing = [name for name, found in texts.items() if len(found) > 1]
    return {key: {name: those[name] for name in differing if name in those} for key, those in values.items()}


def _ingredients(item: Item) -> dict[str, Any]:
    return {} if item.manifest is None else dict(flat("", item.manifest.ingredients))


def _digest(item: Item) -> str:
    return item.key.rpartition("-")[2]


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _shown(value: Any) -> str:
    """A value in one word; of a digest its beginning."""
    return _DIGEST.sub(r"\1", whole(value))


def _words(values: Mapping[str, Any]) -> str:
    """Values as they follow '@' on a command line, or nothing if that would be no single short word."""
    text = ",".join(f"{name}={_shown(value)}" for name, value in values.items())
    return text if len(text) <= LONGEST_WORDS and re.fullmatch(r"[\w.,=+-]+", text) else ""


def _is(value: Any, text: str) -> bool:
    """Whether a text on a command line means a value."""
    written = _shown(value), whole(value)
    if any(each.replace(" ", "").lower() == text.replace(" ", "").lower() for each in written):
        return True
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and float(text) == value
    except ValueError:
        return False
