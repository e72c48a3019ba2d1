"""Reads files that another program may have written: never a device, a FIFO, or more than is expected."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(file: Path, most: int) -> bytes:
    """The contents of a regular file of at most `most` bytes. Raises OSError, also for any other file."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # A FIFO would block.
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(file))
        if status.st_size > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
        return stream.read()
