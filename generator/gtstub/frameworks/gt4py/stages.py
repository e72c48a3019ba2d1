"""The data that gtstub's steps pass between gt4py's steps: programs with their entries, found or to be built."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gt4py.next import utils
from gt4py.next.otf import arguments
from gt4py.next.type_system import type_specifications as ts

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.lookup import Request
from gtstub.entries.cache.manifest import BuildStage
from gtstub.frameworks.gt4py.internals import CompilableProgramDef, ConcreteProgramDef


@dataclasses.dataclass(frozen=True)
class RequestedProgram:
    """A program as gt4py has parsed it, and the entry that it needs."""

    parsed: ConcreteProgramDef[Any, Any]
    request: Request


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedArgs(arguments.CompileTimeArgs):
    """
    The compile-time arguments of a program whose entry is to be built: gt4py hands them on to the lowering step.
    `label` is the program in messages.
    """

    requested: RequestedProgram
    label: str


@dataclasses.dataclass
class FoundProgramDef(CompilableProgramDef):
    """A program with a cache entry, which gt4py need not lower. `data` is None."""

    entry: Entry


@dataclasses.dataclass
class LoweredProgramDef(CompilableProgramDef):
    """
    A lowered program. `parameter_types` are the types before lowering, which replaces named collections with tuples;
    `request` is the entry to build, and `measured` are the stages of its build so far; a call of gt4py's own
    `is_waiting` for it.
    """

    parameter_types: Mapping[str, ts.TypeSpec]
    request: Request | None = dataclasses.field(default=None, metadata=utils.gt4py_metadata(fingerprint=False))
    measured: tuple[BuildStage, ...] = dataclasses.field(
        default=(), compare=False, metadata=utils.gt4py_metadata(fingerprint=False)
    )
    is_waiting: bool = dataclasses.field(default=False, metadata=utils.gt4py_metadata(fingerprint=False))
