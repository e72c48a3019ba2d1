"""
What tells a compiler apart from another one that has its name: path, size and time of the program that PATH finds. A
wrapper such as ccache, mpicc or Cray's cc stays the same when it starts another compiler, so gtstub asks it for the
version.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

type Identity = list[str | int]

_DIRECT = re.compile(r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|icx|icpx)(?:-[\d.]+)?")
"""The names of programs that start no other compiler, unless they are scripts."""

PATIENCE = 60.0
"""Seconds that a wrapper has to print the version."""


def identity_on_path(program: str) -> Identity | None:
    """Path, size and time of the program that PATH finds under a name; None if there is none."""
    return identity(shutil.which(program))


def identity(program: str | None) -> Identity | None:
    """Path, size and time of a program, so that an upgrade in place counts as another program."""
    if program is None:
        return None
    status = Path(program).stat()
    return [str(Path(program).resolve()), status.st_size, status.st_mtime_ns]


def compiler_identity(command: Sequence[str], *, asks: bool = True) -> Identity | None:
    """The identity of a compiler with its arguments. If `asks`, that of a wrapper ends with its version."""
    found = identity_on_path(command[0])
    if found is None or not asks or _is_direct(Path(str(found[0]))):
        return found
    return [*found, _version(tuple(command), tuple(sorted(os.environ.items())))]


def _is_direct(program: Path) -> bool:
    if _DIRECT.fullmatch(program.name) is None:
        return False
    try:
        with program.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return True


@functools.lru_cache(maxsize=16)
def _version(command: Sequence[str], _environment: Sequence[tuple[str, str]]) -> str:
    """What a wrapper prints; it may read the environment. Each process asks once."""
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return done.stdout.decode(errors="replace")
