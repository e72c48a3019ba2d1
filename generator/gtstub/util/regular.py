"""Reads files that another program may have written: never a device, a FIFO, or more than is expected."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_regular(file: Path, most: int, directory: int | None = None) -> bytes:
    """The contents of a regular file of at most `most` bytes, as `opened`. Raises OSError, also for any other file."""
    with opened(file, directory) as descriptor:
        return read_opened(descriptor, most, file)


def read_opened(descriptor: int, most: int, file: Path) -> bytes:
    """The same for a file that was opened. `file` is its name in errors."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(file))
    if status.st_size > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
    with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
        return stream.read()


@contextmanager
def opened(file: Path, directory: int | None = None) -> Iterator[int]:
    """
    A descriptor to read a file of any kind, or a directory; with `directory`, a descriptor, the file of this name in
    it. Raises OSError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # A FIFO would block.
    descriptor = os.open(file, flags) if directory is None else os.open(file.name, flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
