"""A temporary cache, for runs that cannot write their cache."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

from gtstub import settings
from gtstub.entries.cache.mounts import nearest
from gtstub.entries.cache.store import Cache


def writable(cache: Cache) -> Cache:
    """
    The cache, if its root can be written. Otherwise a cache in a temporary directory with the given one as a shared
    layer. The directory is removed when this process exits.
    """
    place = nearest(cache.root)
    if os.access(place, os.W_OK | os.X_OK) and (place == cache.root or _takes_a_directory(place)):
        return cache
    return Cache(_directory(cache.root), cache.layers)


def _takes_a_directory(place: Path) -> bool:
    """Whether the root can be made in `place`: os.access() tells root that it may write to /proc."""
    try:
        Path(tempfile.mkdtemp(prefix=".gtstub-", dir=place)).rmdir()
    except OSError:
        return False
    return True


_in_place_of: dict[Path, Path] = {}
"""The roots that cannot be written, by the temporary directories in their place, until this was said."""


def say_if_temporary(cache: Cache) -> None:
    """Says on stderr, once, that what is about to be built is not kept. Entries that are found are not concerned."""
    if (root := _in_place_of.pop(cache.root, None)) is None:
        return
    text = f"the cache '{root}' cannot be written. What this process compiles is lost when it exits. To keep it, name"
    print(f"gtstub: {text} another directory in {settings.CACHE_DIR}.", file=sys.stderr)


@functools.cache
def _directory(root: Path) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="gtstub-"))
    atexit.register(_remove, directory, os.getpid())
    _in_place_of[directory] = root
    return directory


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # A forked child must not remove its parent's cache.
        shutil.rmtree(directory, ignore_errors=True)
