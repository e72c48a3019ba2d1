"""
Equal texts are compiled once in a run of tests, by whichever process comes first: many tests need the same small
libraries, each in a folder of its own, because the host knows a program by its files.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

LIBRARIES = "TESTS_COMPILED"
"""The environment variable with the directory of this run, which all of its processes inherit."""


def share_libraries() -> None:
    """Makes the directory, unless a process above this one has; it is removed at the end."""
    if LIBRARIES not in os.environ:
        os.environ[LIBRARIES] = tempfile.mkdtemp(prefix="gtstub-libraries-")
        atexit.register(shutil.rmtree, os.environ[LIBRARIES], ignore_errors=True)


def compile_once(key: tuple[str, ...], output: Path, compile_now: Callable[[], object]) -> None:
    """`compile_now` writes the library `output`. All that the library depends on is in `key`, except for headers."""
    if LIBRARIES not in os.environ:
        compile_now()
        return
    kept = Path(os.environ[LIBRARIES]) / hashlib.sha256("\0".join(key).encode()).hexdigest()
    if kept.exists():
        output.unlink(missing_ok=True)  # it may be loaded
        shutil.copy(kept, output)
    else:
        compile_now()
        part = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(output, part)
        part.replace(kept)
