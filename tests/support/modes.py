"""Modes of files."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path


def writable_by_others(place: Path) -> Iterator[str]:
    """What others can write below a directory, of what they can reach."""
    for path in place.iterdir():
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o022:
            yield f"{mode:04o} {path}"
        if path.is_dir() and mode & 0o011:
            yield from writable_by_others(path)
