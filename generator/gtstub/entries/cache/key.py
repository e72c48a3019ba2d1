"""
The key of a cache entry: a digest of its ingredients. These are everything that changes the built libraries, as a
nested mapping that JSON can express and people can read.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gtstub.util.canonical import canonical, plain, sha256

LONGEST_NAME = 100
"""Characters of a program's name in a key. File systems allow names of 255 bytes; claims and copies add to a key."""


MISSING = object()
"""Stands for an ingredient that one side lacks; None is a value."""

_KEY = re.compile(rf"\w{{1,{LONGEST_NAME}}}-[0-9a-f]{{32}}", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Difference:
    """An ingredient that differs: its path, such as 'static.vertical_end', and its value on each side."""

    path: str
    ours: Any
    theirs: Any


def make_key(name: str, ingredients: Mapping[str, Any]) -> str:
    """The key of the entry of program `name` made of `ingredients`, a directory name for every file system."""
    digest = sha256(canonical({"name": name, "ingredients": plain(ingredients)}))
    return f"{short_name(name)}-{digest[:32]}"


def is_key(text: str) -> bool:
    """Whether a text has the form that `make_key` gives a key."""
    return _KEY.fullmatch(text) is not None


def short_name(name: str) -> str:
    """The part of the key of program `name` before the last '-'."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)[:LONGEST_NAME]


def flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values in nested mappings, each with its dotted path, which begins with `path`. An empty one is a value."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """The ingredients that differ, in our order. Of two lists that are sets, only the elements of one side count."""
    return list(_differences("", plain(ours), plain(theirs)))


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[Difference]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys((*ours, *theirs)):
            inner = f"{path}.{name}" if path else name
            yield from _differences(inner, ours.get(name, MISSING), theirs.get(name, MISSING))
    elif not _is_equal(ours, theirs):
        if _is_set(ours) and _is_set(theirs) and set(ours) != set(theirs):
            ours, theirs = [x for x in ours if x not in theirs], [x for x in theirs if x not in ours]
        yield Difference(path, ours, theirs)


def _is_equal(ours: Any, theirs: Any) -> bool:
    """Compares as keys do: True is not 1, and 1 is not 1.0."""
    if ours is MISSING or theirs is MISSING:
        return ours is theirs
    return canonical(ours) == canonical(theirs)


def _is_set(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)
