"""The request for the entry of a program, in the cache and with the compilers of this process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gtstub import ranks
from gtstub.cache.lookup import Request
from gtstub.cache.store import Cache, open_cache
from gtstub.cache.temporary import writable
from gtstub.settings import Mode, mode
from gtstub.toolchain import compiler

if TYPE_CHECKING:
    from gtstub.frameworks.dace.build import Build


def make_request(name: str, ingredients: Mapping[str, Any], baked: Mapping[str, Any], build: Build) -> Request:
    """
    The entry of program `name`. In mode Run, or without a compiler, the entry of any toolchain that the cache knows.

    Raises ToolchainError without such an entry and without a compiler, except in mode Run.
    """
    place = _open_cache()
    request = Request(name, ingredients, baked, place)
    never_builds = mode() == Mode.RUN
    if never_builds or not compiler.is_complete(build.cmake[0]):
        found = _of_any_toolchain(request, build.cmake)
        if never_builds or found.is_there:
            return found
    return _built_with(request, build.toolchain(place).ingredients)


def _built_with(request: Request, made: Mapping[str, Any]) -> Request:
    return dataclasses.replace(request, ingredients={**request.ingredients, "toolchain": made})


def _of_any_toolchain(request: Request, cmake: tuple[str, list[str]]) -> Request:
    """
    An existing entry of any toolchain, or else a request for an entry that does not exist. `cmake` is that of
    Build.
    """
    place = request.cache
    known = [_built_with(request, each.ingredients) for each in compiler.known(place.layers, *cmake)]
    there = list({each.key: each for each in known if each.is_there}.values())
    if len(there) > 1:
        there.sort(key=lambda each: place.find(each.key) is None)  # Whole entries come first.
    if there:
        return there[0]
    # Imported entries arrive without the record of their toolchain.
    nearest = place.nearest(request.program, request.ingredients)
    if nearest is not None and [each.path for each in nearest.differences] == ["toolchain"]:
        return _built_with(request, nearest.manifest.ingredients["toolchain"])
    return known[0] if known else request


def _open_cache() -> Cache:
    """
    The cache of this process. A temporary one takes its place if it cannot be written, except in mode Build, which
    would build in vain, and for a rank, because the other ranks would not see it.
    """
    cache = open_cache(ranks.current().path)
    return writable(cache) if mode() == Mode.BUILD_AND_RUN and ranks.current().size == 1 else cache
