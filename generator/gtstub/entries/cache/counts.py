"""
How often the programs of runs were found in a cache, and how often they were built: a file for each, with a byte for
each time. An append needs no lock, and what cannot be counted is not.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

HITS, MISSES = ".hits", ".misses"
"""The names of the files."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Counts(NamedTuple):
    hits: int
    misses: int


def count(root: Path, name: str) -> None:
    """Adds one, if the cache is there and its file can be written."""
    with contextlib.suppress(OSError):
        file = os.open(root / name, _APPEND, 0o644)
        try:
            is_new = os.fstat(file).st_size == 0
            os.write(file, b".")
            if is_new and root.stat().st_mode & stat.S_IWGRP:  # the cache of a group, whose members all count
                os.fchmod(file, 0o664)
        finally:
            os.close(file)


def counts(root: Path) -> Counts:
    return Counts(_bytes(root / HITS), _bytes(root / MISSES))


def _bytes(file: Path) -> int:
    try:
        status = file.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
