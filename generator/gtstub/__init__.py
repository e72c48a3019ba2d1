"""gtstub: C call stubs for gt4py programs compiled by DaCe."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub._version import __version__

if TYPE_CHECKING:
    from gtstub._host import Program
    from gtstub.frameworks.gt4py.compile import compile  # noqa: A004  gt4py's own word for it
    from gtstub.profiling.report import profile
    from gtstub.program.compiled import CompiledProgram
    from gtstub.program.registry import wait_for_compilation

__all__ = ["CompiledProgram", "__version__", "compile", "load", "profile", "wait_for_compilation"]

_HOMES = {
    "CompiledProgram": "gtstub.program.compiled",
    "compile": "gtstub.frameworks.gt4py.compile",
    "profile": "gtstub.profiling.report",
    "wait_for_compilation": "gtstub.program.registry",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for: who loads a compiled program needs neither gt4py nor the rest of gtstub."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gtstub' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def load(path: str | PathLike[str], baked: Mapping[str, Any] | None = None) -> Program:
    """
    Loads the compiled program of a cache entry; needs neither gt4py nor DaCe.

    Raises gtstub.errors.CacheError where the entry is not what was built, where this machine cannot run it, and where a
    value was compiled in that is not the one that `baked` has under its name.
    """
    from gtstub.cache.entry import Entry  # Here, because most processes that import gtstub load no program themselves.

    return Entry(Path(path)).load(baked)
