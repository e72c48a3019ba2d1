"""The entry that a program needs, in the cache and with the compilers of this process: found, or to be built."""

from __future__ import annotations

import dataclasses
import functools
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from gtstub import ranks, settings
from gtstub.entries import spans
from gtstub.entries.cache.counts import HITS, count
from gtstub.entries.cache.entry import Entry, unsupported
from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.mounts import check_loadable
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.entries.cache.temporary import say_if_temporary, writable
from gtstub.entries.cache.wording import sentence
from gtstub.entries.toolchain import compiler
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.entries.toolchain.machine import machine_directory
from gtstub.errors import CacheError

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
    def label(self) -> str:
        """The program with its static arguments, as messages name it."""
        static = [name for name in self.ingredients.get("static", {}) if name in self.baked]
        listed = ", ".join(f"{name}={self.baked[name]}" for name in static[:SHOWN])
        return f"{self.program} ({listed}{', ...' if len(static) > SHOWN else ''})" if static else self.program

    @property
    def is_there(self) -> bool:
        """Whether a layer has the entry, whole or not."""
        return any(os.path.exists(layer / self.key) for layer in self.cache.layers)  # noqa: PTH110  Path.exists raises

    def is_usable(self) -> bool:
        """Whether a layer has the entry whole and trusted, and this machine can run it."""
        return self._is_fit(lambda entry: entry.verify_usable() is not None)

    def seems_usable(self) -> bool:
        """Whether a layer has the entry with files of the right sizes, and this machine can run it."""
        return self._is_fit(lambda entry: not unsupported(entry.manifest()))

    def _is_fit(self, fits: Callable[[Entry], bool]) -> bool:
        for layer in self.cache.layers:
            with suppress(CacheError):
                if fits(Entry(layer / self.key)):
                    return True
        return False

    def find(self) -> Entry | None:
        """
        The entry, or None if it must be built. In mode Run, a missing entry is a CacheError; in mode BuildAndRun, one
        that could be built and not be loaded.
        """
        with spans.span("lookup", self.key):
            entry = self.cache.find(self.key)
        if settings.mode() == settings.Mode.RUN:
            if entry is None:
                raise self._refusal()
        elif entry is None:
            if settings.mode() == settings.Mode.BUILD_AND_RUN:
                say_if_temporary(self.cache)  # Why a refusal may name a cache that nobody has chosen.
                check_loadable(self.cache.root)
        elif ranks.current().rank == 0:  # A thousand ranks would wait for each other's bytes.
            count(self.cache.root, HITS)
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
        """The reason why an existing entry, or one in a layer that cannot be read, cannot be used; None without one."""
        for entry in (Entry(layer / self.key) for layer in self.cache.layers):
            try:
                entry.verify_usable()
            except CacheError as error:
                if os.path.exists(entry.path) or isinstance(error.__cause__, PermissionError):  # noqa: PTH110
                    return error
        return None


def make_request(
    name: str, ingredients: Mapping[str, Any], baked: Mapping[str, Any], cmake: tuple[str, list[str]]
) -> Request:
    """
    The entry of program `name`. `cmake` has a C++ compiler and the arguments that its build passes to CMake. In mode
    Run, or without a compiler, the entry of any toolchain that the cache knows.

    Raises ToolchainError without such an entry and without a compiler, except in mode Run.
    """
    cache = _open_cache()
    request = Request(name, ingredients, baked, cache)
    never_builds = settings.mode() == settings.Mode.RUN
    if never_builds or not compiler.is_complete(cmake[0]):
        found = _of_any_toolchain(request, cmake)
        if never_builds or found.is_there:
            return found
    return _built_with(request, toolchain_of(cache, cmake).ingredients)


def toolchain_of(cache: Cache, cmake: tuple[str, list[str]]) -> Toolchain:
    """
    The toolchain of this environment; `cmake` are DaCe's C++ compiler and its further arguments of CMake. Raises
    ToolchainError as `compiler.find` does.
    """
    return compiler.find(cache.root, cache.shared, *cmake, machine_directory())


def _built_with(request: Request, made: Mapping[str, Any]) -> Request:
    return dataclasses.replace(request, ingredients={**request.ingredients, "toolchain": made})


def _of_any_toolchain(request: Request, cmake: tuple[str, list[str]]) -> Request:
    """An existing entry of any toolchain, or else a request for an entry that does not exist."""
    cache = request.cache
    known = [_built_with(request, each.ingredients) for each in compiler.known(cache.layers, *cmake)]
    there = list({each.key: each for each in known if each.is_there}.values())
    if len(there) == 1 and there[0].seems_usable():  # Its files are read when it is found.
        return there[0]
    # Imported entries arrive without the record of their toolchain.
    similar = cache.similar(request.program, request.ingredients)
    others = (each for each in similar if [each.path for each in each.differences] == ["toolchain"])
    made = (_built_with(request, each.manifest.ingredients["toolchain"]) for each in others)
    found = list({each.key: each for each in (*there, *made)}.values())
    if len(found) > 1:
        found.sort(key=lambda each: not each.is_usable())
    return [*found, *known, request][0]


def _open_cache() -> Cache:
    """
    The cache of this process. A temporary one takes its place if it cannot be written, except in mode Build, which
    would build in vain, and for a rank, because the other ranks would not see it.
    """
    cache = open_cache(ranks.current().path)
    alone = settings.mode() == settings.Mode.BUILD_AND_RUN and ranks.current().size == 1
    return writable(cache) if alone else cache
