"""
Equal texts are compiled once in a process: many tests need the same small libraries, each in a folder of its own,
because the host knows a program by its files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_known: dict[tuple[str, ...], bytes] = {}


def compile_once(key: tuple[str, ...], output: Path, compile_now: Callable[[], object]) -> None:
    """`compile_now` writes the library `output`. All that the library depends on is in `key`, except for headers."""
    if key in _known:
        output.unlink(missing_ok=True)  # it may be loaded
        output.write_bytes(_known[key])
        output.chmod(0o755)
    else:
        compile_now()
        _known[key] = output.read_bytes()
