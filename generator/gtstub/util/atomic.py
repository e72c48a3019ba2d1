"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """
    A path beside `file`, for a new version of it. If the block ends without an exception, the new version replaces
    `file` by one rename; other processes see all of it or nothing. It is removed otherwise.
    """
    aside = file.with_name(f".{file.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield aside
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def write(file: Path, text: str) -> bool:
    """Writes a file and its directory; False if the file had this text already and was left alone."""
    content = text.encode()
    if file.exists() and file.read_bytes() == content:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as aside:
        aside.write_bytes(content)
    return True
