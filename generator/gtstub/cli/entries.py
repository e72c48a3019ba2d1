"""The cache entries that command lines name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gtstub.errors import CacheError
from gtstub.util.visible import visible

if TYPE_CHECKING:
    from gtstub.entries.cache.inventory import Item
    from gtstub.entries.cache.store import Cache


def entry_in(cache: Cache, name: str) -> Item:
    """The entry that `name` means (entries/cache/names.py). One line on stderr says which one if there are several."""
    from gtstub.entries.cache.names import choice, named

    found = named(cache, name)
    if len(found) > 1:
        click.echo(visible(f"gtstub: {choice(found)}"), err=True)
    return found[0]


def path_or_entry(given: Path, directory: Path | None = None) -> Path:
    """
    A path as it is, or the directory of the entry with this name: in the cache at `directory`, where it is always a
    name, or else in that of this process. A text with '/' or with a suffix is a path. Raises CacheError.
    """
    from gtstub.entries.cache.names import UnknownNameError
    from gtstub.entries.cache.store import Cache, open_cache

    text = str(given)
    if directory is not None:
        return entry_in(Cache(directory.absolute()), text).path
    if os.sep in text or "." in text.partition("@")[0] or given.exists():
        return given
    try:
        return entry_in(open_cache(), text).path
    except UnknownNameError as error:
        raise CacheError(f"There is no file or directory '{given}'. {error}") from None
