"""Looks up the cache entry of a program by its ingredients."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gtstub import settings
from gtstub.cache.entry import Entry
from gtstub.cache.key import make_key
from gtstub.cache.wording import sentence
from gtstub.errors import CacheError

if TYPE_CHECKING:
    from gtstub.cache.store import Cache

SHOWN = 6
"""The number of differences that a message lists."""


@dataclasses.dataclass(frozen=True)
class Request:
    """
    An entry of `cache`, whether it exists or not. `program` is the name that its user knows; `baked` maps names to the
    values that are compiled in.
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
        """Whether a layer has the entry, whole or not."""
        return any((layer / self.key).exists() for layer in self.cache.layers)

    def find(self) -> Entry | None:
        """The entry, or None if it must be built. In mode Run, a missing entry is a CacheError."""
        entry = self.cache.find(self.key)
        if entry is None and settings.mode() == settings.Mode.RUN:
            raise self._refusal()
        return entry

    def _refusal(self) -> CacheError:
        message = f"Program '{self.program}' has no entry in the cache '{self.cache.root}', and mode 'Run' builds none."
        if (unfit := self._unfit()) is not None:
            message += f" The entry that exists cannot be used: {unfit}"
        elif (nearest := self.cache.nearest(self.program, self.ingredients)) is not None:
            listed = "; ".join(sentence(difference) for difference in nearest.differences[:SHOWN])
            more = len(nearest.differences) - SHOWN
            message += f" The most similar entry, '{nearest.entry.key}', differs: {listed}"
            message += f"; and {more} more." if more > 0 else "."
        else:
            message += " The cache has no entry of this program."
        return CacheError(f"{message} To build it: GTSTUB_MODE=Build {shlex.join(sys.orig_argv)}")

    def _unfit(self) -> CacheError | None:
        """The reason why an existing entry cannot be used; None if no layer has the entry."""
        for entry in (Entry(layer / self.key) for layer in self.cache.layers):
            try:
                if entry.path.exists():
                    entry.verify_usable()
            except CacheError as error:
                return error
        return None
