"""
C call stubs for gt4py programs that DaCe compiles. Five things that it does:

1. A gt4py program is called through its stub: `from gtstub.frameworks.gt4py import make_backend`, and
   `@gtx.program(backend=make_backend(gpu=False))`. A program of DaCe itself: `@gtstub.program`.
2. `gtstub.compile(program, ...)` compiles a program before its first call, with arguments bound or compiled in.
3. `gtstub.capture()` makes one call of all that a time step calls, and `gtstub.Granule` exports it to Fortran and C.
4. `gtstub.load(path)` loads a compiled program where there is neither gt4py nor DaCe.
5. `with gtstub.profile() as report:` times each program; `with gtstub.checks("finite"):` finds what writes NaN.

The command `gtstub -h` lists what can be done in a shell.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub._version import __version__

if TYPE_CHECKING:
    from gtstub._host import BoundCall, Program, pool
    from gtstub.frameworks.dace.program import program
    from gtstub.frameworks.framework import compile  # noqa: A004  because gt4py uses this name
    from gtstub.programs.checks import checks
    from gtstub.programs.compiled import CompiledProgram
    from gtstub.programs.granule.granule import Granule
    from gtstub.programs.handed_over import hand_over, take_back
    from gtstub.programs.registry import wait_for_compilation
    from gtstub.programs.steps import Step, action, capture, swap
    from gtstub.programs.streams import stream
    from gtstub.tools.profiling.report import profile
    from gtstub.tools.recorded import archives

__all__ = [
    "BoundCall",
    "CompiledProgram",
    "Granule",
    "Program",
    "Step",
    "__version__",
    "action",
    "archives",
    "capture",
    "checks",
    "compile",
    "hand_over",
    "load",
    "pool",
    "profile",
    "program",
    "stream",
    "swap",
    "take_back",
    "wait_for_compilation",
]

_HOMES = {
    "BoundCall": "gtstub._host",
    "CompiledProgram": "gtstub.programs.compiled",
    "Granule": "gtstub.programs.granule.granule",
    "Program": "gtstub._host",
    "Step": "gtstub.programs.steps",
    "action": "gtstub.programs.steps",
    "archives": "gtstub.tools.recorded",
    "capture": "gtstub.programs.steps",
    "checks": "gtstub.programs.checks",
    "compile": "gtstub.frameworks.framework",
    "hand_over": "gtstub.programs.handed_over",
    "pool": "gtstub._host",
    "profile": "gtstub.tools.profiling.report",
    "program": "gtstub.frameworks.dace.program",
    "stream": "gtstub.programs.streams",
    "swap": "gtstub.programs.steps",
    "take_back": "gtstub.programs.handed_over",
    "wait_for_compilation": "gtstub.programs.registry",
}


_MODULES = ("errors", "frameworks", "ranks")
"""Modules that users import names from."""


def __getattr__(name: str) -> Any:
    """Imports a name at its first use, because a process that only loads compiled programs needs little of gtstub."""
    if name in _MODULES:
        return importlib.import_module(f"gtstub.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gtstub' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What users need. `help()` imports all of it, so that there is no `program` without DaCe."""
    has_dace = importlib.util.find_spec("dace") is not None
    return sorted({*__all__, *_MODULES} - (set() if has_dace else {"program"}))


def load(path: str | PathLike[str], baked: Mapping[str, Any] | None = None) -> Program:
    """
    Loads the compiled program of the cache entry in the directory `path`. This needs neither gt4py nor DaCe.

    Raises gtstub.errors.CacheError if the entry is damaged, if this machine cannot run it, or if a value that was
    compiled in differs from the one in `baked` with the same name.
    """
    from gtstub.entries.cache.entry import Entry  # imported here because most processes load no program this way

    return Entry(Path(path)).load(baked)
