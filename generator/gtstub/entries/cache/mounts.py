"""What the mount of a file system forbids to the programs in a cache."""

from __future__ import annotations

import os
from pathlib import Path

from gtstub import settings
from gtstub.errors import CacheError


def nearest(directory: Path) -> Path:
    """The directory, or the nearest one above it that exists."""
    return next(path for path in (directory, *directory.parents) if os.path.exists(path))  # noqa: PTH110  Path.exists raises


def check_loadable(root: Path) -> None:
    """
    Raises CacheError if no program can be loaded from the cache `root`, which need not exist: a process says so before
    it builds a program, and not after the minutes that this may take.
    """
    if os.statvfs(nearest(root)).f_flag & os.ST_NOEXEC:
        raise CacheError(
            f"No program can be loaded from the cache '{root}': its file system is mounted with the option noexec. Name"
            f" a directory on another file system in {settings.CACHE_DIR}."
        )
