"""
gtstub's own errors without the lines of gtstub and gt4py that lead to them, because they say what is wrong.
GTSTUB_TRACEBACK=full shows these lines. Other errors keep theirs.
"""

from __future__ import annotations

import contextlib
import linecache
from pathlib import Path
from types import TracebackType

from gtstub import settings
from gtstub.errors import GtstubError

PACKAGE = str(Path(__file__).parents[2])


def is_own(error: BaseException | None) -> bool:
    """Whether a statement of gtstub has raised an error deliberately."""
    if isinstance(error, GtstubError):
        return True
    last = error.__traceback__ if isinstance(error, TypeError | ValueError) else None
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not (file := last.tb_frame.f_code.co_filename).startswith(PACKAGE):
        return False
    return linecache.getline(file, last.tb_lineno).lstrip().startswith("raise ")


def trim(error: BaseException | None) -> None:
    """Forgets how an error of gtstub's own, and such a cause of it, came about."""
    if settings.shows_frames():
        return
    while error is not None and is_own(error):
        error.__traceback__ = None
        error.__suppress_context__ = True
        error = error.__cause__


class OwnErrors(contextlib.AbstractContextManager[None]):
    """A block in a function that users call: its errors begin at their line."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        trim(error)
