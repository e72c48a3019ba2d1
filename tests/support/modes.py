"""Modes of files, and processes that make files under another umask."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

OTHER = 65534
"""The number of a group that is not the user's own."""

NOTHING: Mapping[str, str] = {}


def writable_by_others(place: Path) -> Iterator[str]:
    """What others can write below a directory, of what they can reach."""
    for path in place.iterdir():
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o022:
            yield f"{mode:04o} {path}"
        if path.is_dir() and mode & 0o011:
            yield from writable_by_others(path)


def run_python(*arguments: str | Path, umask: int, group: int | None, environment: Mapping[str, str] = NOTHING) -> str:
    """Runs Python under a umask, and in one group alone if it is given, which needs root. Returns what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        umask=umask,
        group=group,
        extra_groups=None if group is None else [],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
