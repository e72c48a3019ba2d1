"""gtstub: C call stubs for gt4py programs compiled by DaCe."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gtstub._host import Program

__version__ = "0.1.0"


def load(path: str | PathLike[str]) -> Program:
    """Loads the compiled program of a cache entry; needs neither gt4py nor DaCe."""
    from gtstub import entry  # Here, because the version is all that most who import gtstub want of this module.

    return entry.load(path)
