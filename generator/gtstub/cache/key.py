"""
What a cache entry is made of: a nested mapping that JSON can express and people can read, of everything that changes
what is built. An entry's key is its digest; where two differ, one line for each difference says where.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from gtstub.util.canonical import canonical, plain

LONGEST_NAME = 100
"""Characters of a program's name in a key: file systems take names of 255 bytes, and claims and copies add to a key."""


class Missing(Enum):
    """Stands where only the other side has something; None is a value."""

    MISSING = "-"


MISSING = Missing.MISSING


@dataclasses.dataclass(frozen=True)
class Difference:
    """One place in two mappings of ingredients, as 'static.vertical_end', and what each has there."""

    path: str
    ours: Any
    theirs: Any


def make_key(name: str, ingredients: Mapping[str, Any]) -> str:
    """The name of the entry of program `name` that is made of `ingredients`: one that every file system takes."""
    digest = hashlib.sha256(canonical({"name": name, "ingredients": plain(ingredients)})).hexdigest()
    return f"{short_name(name)}-{digest[:32]}"


def short_name(name: str) -> str:
    """What the key of an entry of program `name` begins with, before the last '-'."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)[:LONGEST_NAME]


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """Where two mappings of ingredients differ, in our order; of lists that are sets, what only one side has."""
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
    """As a key sees it: True is not 1, and 1 is not 1.0."""
    if ours is MISSING or theirs is MISSING:
        return ours is theirs
    return canonical(ours) == canonical(theirs)


def _is_set(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)
