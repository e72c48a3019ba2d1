"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_directories(path: Path) -> None:
    """Makes a directory and those above it. Nobody else can write them, whatever the umask is. Raises OSError."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(0o755, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """
    Yields a path next to `file` for its new version. If the block ends without an exception, one rename puts the new
    version in the place of `file`, so that other processes never see a part of it. Otherwise it is removed.

    A link stays, and the file that it leads to is replaced. What is no file, such as a device or a FIFO, stays too:
    then the path is `file` itself, and nothing is renamed.

    The new version is an empty file at first. Nobody else can write it, whatever the umask is.
    """
    with suppress(FileNotFoundError):
        file.stat()  # Raises OSError for links that lead to each other; of these, resolve() makes a RuntimeError.
    if file.exists() and not file.is_file():
        yield file
        return
    target = file.resolve()
    aside = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    aside.unlink(missing_ok=True)
    try:
        aside.touch(0o644, exist_ok=False)
        yield aside
        if (mode := stat.S_IMODE(aside.stat().st_mode)) & WRITABLE_BY_OTHERS:  # A linker makes its output anew.
            aside.chmod(mode & ~WRITABLE_BY_OTHERS)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def write(file: Path, text: str) -> bool:
    """Writes a file, and creates its directory. Returns False, and writes nothing, if the file has this text."""
    content = text.encode()
    if file.is_file() and file.read_bytes() == content:
        return False
    make_directories(file.parent)
    with replacing(file) as aside:
        aside.write_bytes(content)
    return True
