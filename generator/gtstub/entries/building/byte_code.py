"""
Byte code for the processes that build. Where Python finds none and may write none, each of them would compile gt4py and
DaCe from source when it starts.

They then keep byte code in a directory of the cache. A user who wants none beside his sources (PYTHONDONTWRITEBYTECODE)
still gets none there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from gtstub.entries.cache.mounts import nearest
from gtstub.entries.cache.store import open_cache
from gtstub.entries.toolchain.machine import BYTE_CODE
from gtstub.entries.trust import check_directory, make_directory, mark_root
from gtstub.errors import TrustError
from gtstub.util.regular import opened

PACKAGES = ("gt4py", "dace")
"""What every build imports."""


def open_byte_code() -> int | None:
    """
    A descriptor of the directory for the byte code of processes that build, marked as used. By its path, somebody who
    can write above the cache could put another one in its place. None if Python finds the byte code of `PACKAGES`, or
    may write it, where it keeps it; or if the directory cannot be made, or another user could have written it.
    """
    if all(map(_has_byte_code, PACKAGES)):
        return None
    root = open_cache().root
    path = root / BYTE_CODE / _name()
    try:
        make_directory(path.parent, exist_ok=True)
        path.mkdir(0o700, exist_ok=True)
        mark_root(root)
        with opened(path) as directory:
            check_directory(directory, path)
            status = os.fstat(directory)
            if status.st_uid != os.geteuid() or status.st_mode & 0o077:
                return None
            os.utime(directory)
            return os.dup(directory)
    except (OSError, TrustError):
        return None


def _has_byte_code(package: str) -> bool:
    """Whether Python finds the byte code of a package or may write it. True for one that is missing, or has none."""
    found = find_spec(package)
    if found is None or found.cached is None:
        return True
    file = Path(found.cached)
    return file.exists() or (not sys.dont_write_bytecode and os.access(nearest(file.parent), os.W_OK | os.X_OK))


def _name() -> str:
    """
    Differs for interpreters, users, and sets of installed packages: Python compares only time and size of a source with
    those in its byte code, and two containers may have files of the same time and size at one path.
    """
    installed = sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    known = {"python": sys.version, "prefix": sys.prefix, "user": os.getuid(), "installed": installed}
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]
