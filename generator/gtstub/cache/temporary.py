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
from gtstub.cache.store import Cache


def writable(cache: Cache) -> Cache:
    """
    The cache, if its root can be written. Otherwise a cache in a temporary directory with the given one as a shared
    layer, and one message on stderr. The directory is removed when this process exits.
    """
    place = next(path for path in (cache.root, *cache.root.parents) if os.path.exists(path))  # noqa: PTH110  Path.exists raises
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


@functools.cache
def _directory(root: Path) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="gtstub-"))
    atexit.register(_remove, directory, os.getpid())
    text = f"the cache '{root}' cannot be written. What this process compiles is lost when it exits. To keep it, name"
    print(f"gtstub: {text} another directory in {settings.CACHE_DIR}.", file=sys.stderr)
    return directory


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # A forked child must not remove its parent's cache.
        shutil.rmtree(directory, ignore_errors=True)
