"""
The directory of this user on this machine, for what all his caches there share: CMake's answers, and what DaCe keeps
from one build for the next. So the first build in a new cache costs what any other one does.

It is outside of all caches, in a directory that everybody can write. So it counts only if nobody else can have
written it; otherwise each cache keeps these things itself.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from gtstub import settings
from gtstub.entries.trust import ASKED
from gtstub.util.atomic import make_directories

PLACES = (Path("/tmp"), Path("/var/tmp"))
"""Where the directory is, if no variable names it: not in $TMPDIR, which many batch systems change for each job."""


BUILD_CACHES = ".build-caches"
"""The directory in it, or in a cache, with what DaCe keeps for later builds: one for each toolchain, of some 80 MB."""

BYTE_CODE = ".byte-code"
"""
The directory in a cache with the byte code of processes that build, one for each interpreter; and in the directory of
the machine with the compiled templates of stubs.
"""


def machine_directory() -> Path | None:
    """
    The directory, made if it does not exist; None if it cannot be made, or if somebody else could write it or replace
    it.
    """
    named = settings.machine_dir()
    for path in (named,) if named else (place / f"gtstub-{os.geteuid()}" for place in PLACES):
        with suppress(OSError):
            if named:
                make_directories(path.parent)
            with suppress(FileExistsError):
                path.mkdir(0o700)
            if _is_own(path):
                return path
    return None


def _is_own(path: Path) -> bool:
    """Whether a path is a directory, and no link, that nobody else can write, open or replace."""
    sys.audit(ASKED, str(path))
    own, above = path.lstat(), path.parent.stat()
    is_private = stat.S_ISDIR(own.st_mode) and own.st_uid == os.geteuid() and not own.st_mode & 0o077
    is_kept = above.st_uid in (0, os.geteuid()) and (above.st_mode & stat.S_ISVTX or not above.st_mode & 0o022)
    return is_private and bool(is_kept)
