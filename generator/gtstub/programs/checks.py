"""Debug checks of the values that programs read and write, and of the memory that they access."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gtstub import _host


@contextmanager
def checks(text: str) -> Iterator[None]:
    """
    Checks the fields of all calls in this context, in all threads:

        with gtstub.checks("nan; min delp*=0; range u=-280:280"):
            step()

    docs/debugging.md lists the words of `text`. A call that writes a value which they refuse raises RuntimeError
    after it has run. A call with such a value in a field that it only reads raises RuntimeError before it runs. With
    "bounds", a call that accesses memory outside of its arguments raises RuntimeError after it has run, and leaves its
    arguments as they were. In nested contexts all checks count.

    Raises ValueError if `text` has a mistake, and RuntimeError if the context ends within a call, in the code of an
    argument; then the checks continue.
    """
    running = _host.begin_checks(text)
    try:
        yield
    finally:
        _host.end_checks(running)
