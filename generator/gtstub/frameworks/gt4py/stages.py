"""What gtstub's steps hand on between gt4py's: programs whose entry was found, and programs that were lowered."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from gt4py.next import utils
from gt4py.next.otf.definitions import CompilableProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub.cache.entry import Entry
from gtstub.cache.lookup import Request


@dataclasses.dataclass
class FoundProgramDef(CompilableProgramDef):
    """A program that need not be lowered, because its entry was found. `data` is None."""

    entry: Entry


@dataclasses.dataclass
class LoweredProgramDef(CompilableProgramDef):
    """
    A lowered program. `parameter_types` are the types before lowering, which replaces named collections by tuples;
    `request` names the entry to build.
    """

    parameter_types: Mapping[str, ts.TypeSpec]
    request: Request | None = dataclasses.field(default=None, metadata=utils.gt4py_metadata(fingerprint=False))
