"""What a program asks of the cache: an entry that is made of these ingredients."""

from __future__ import annotations

import dataclasses
import functools
import json
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gtstub import settings
from gtstub.cache.entry import Entry
from gtstub.cache.key import MISSING, Difference, make_key
from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub.cache.store import Cache

SHOWN = 6
"""Differences that a message lists."""


@dataclasses.dataclass(frozen=True)
class Request:
    """
    An entry of `cache`, whether it is there or not. `program` is the name that its user knows; `baked` are the values
    that are compiled in, by name.
    """

    program: str
    ingredients: Mapping[str, Any]
    baked: Mapping[str, Any]
    cache: Cache

    @functools.cached_property
    def key(self) -> str:
        return make_key(self.program, self.ingredients)

    @property
    def is_there(self) -> bool:
        """Whether some layer has the entry, whole or not."""
        return any((layer / self.key).exists() for layer in self.cache.layers)

    def find(self) -> Entry | None:
        """The entry; None where it has to be built. Raises CacheError where it is missing and must not be built."""
        entry = self.cache.find(self.key)
        if entry is None and settings.mode() == settings.Mode.RUN:
            raise self._refusal()
        return entry

    def _refusal(self) -> CacheError:
        """What is missing, what was found, and what builds it."""
        message = f"Program '{self.program}' has no entry in the cache '{self.cache.root}', and mode 'Run' builds none."
        if (unfit := self._unfit()) is not None:
            message += f" What is there cannot be used: {unfit}"
        elif (nearest := self.cache.nearest(self.program, self.ingredients)) is not None:
            listed = "; ".join(_wording(difference) for difference in nearest.differences[:SHOWN])
            more = len(nearest.differences) - SHOWN
            message += f" The nearest one, '{nearest.entry.key}', was built for something else: {listed}"
            message += f"; and {more} more." if more > 0 else "."
        else:
            message += " There is none of this program at all."
        return CacheError(f"{message} What builds it: GTSTUB_MODE=Build {shlex.join(sys.orig_argv)}")

    def _unfit(self) -> CacheError | None:
        """Why an entry that is there is not used."""
        for layer in self.cache.layers:
            entry = Entry(layer / self.key)
            try:
                if entry.path.exists():
                    entry.verify_usable()
            except CacheError as error:
                return error
        return None


def _wording(difference: Difference) -> str:
    ours, theirs = (
        "nothing" if value is MISSING else json.dumps(value) for value in (difference.ours, difference.theirs)
    )
    return f"'{difference.path}' is {ours}, but was {theirs}"
