"""gtstub: C call stubs for gt4py programs that DaCe compiles."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub._version import __version__

if TYPE_CHECKING:
    from gtstub._host import BoundCall, Program
    from gtstub.frameworks.dace.program import program
    from gtstub.frameworks.framework import compile  # noqa: A004  because gt4py uses this name
    from gtstub.granule.granule import Granule
    from gtstub.profiling.report import profile
    from gtstub.programs.checks import checks
    from gtstub.programs.compiled import CompiledProgram
    from gtstub.programs.handed_over import hand_over, take_back
    from gtstub.programs.registry import wait_for_compilation
    from gtstub.programs.steps import Step, action, capture
    from gtstub.programs.streams import stream

__all__ = [
    "BoundCall",
    "CompiledProgram",
    "Granule",
    "Program",
    "Step",
    "__version__",
    "action",
    "capture",
    "checks",
    "compile",
    "hand_over",
    "load",
    "profile",
    "program",
    "stream",
    "take_back",
    "wait_for_compilation",
]

_HOMES = {
    "BoundCall": "gtstub._host",
    "CompiledProgram": "gtstub.programs.compiled",
    "Granule": "gtstub.granule.granule",
    "Program": "gtstub._host",
    "Step": "gtstub.programs.steps",
    "action": "gtstub.programs.steps",
    "capture": "gtstub.programs.steps",
    "checks": "gtstub.programs.checks",
    "compile": "gtstub.frameworks.framework",
    "hand_over": "gtstub.programs.handed_over",
    "profile": "gtstub.profiling.report",
    "program": "gtstub.frameworks.dace.program",
    "stream": "gtstub.programs.streams",
    "take_back": "gtstub.programs.handed_over",
    "wait_for_compilation": "gtstub.programs.registry",
}


def __getattr__(name: str) -> Any:
    """Imports a name at its first use, because a process that only loads compiled programs needs little of gtstub."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gtstub' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def load(path: str | PathLike[str], baked: Mapping[str, Any] | None = None) -> Program:
    """
    Loads the compiled program of the cache entry in the directory `path`. This needs neither gt4py nor DaCe.

    Raises gtstub.errors.CacheError if the entry is damaged, if this machine cannot run it, or if a value that was
    compiled in differs from the one in `baked` with the same name.
    """
    from gtstub.cache.entry import Entry  # imported here because most processes load no program this way

    return Entry(Path(path)).load(baked)
