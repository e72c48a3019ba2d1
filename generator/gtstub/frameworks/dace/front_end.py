"""What a package that builds on DaCe, such as NDSL, does otherwise than DaCe."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import dace
from dace.frontend.python.parser import DaceProgram

from gtstub.frameworks.dace.internals import program_of
from gtstub.frameworks.dace.paths import Step


class FrontEnd:
    """DaCe's own way; the base of others."""

    def steps(self, value: Any) -> tuple[str, ...]:  # noqa: ARG002
        """The attributes that lead from an object that DaCe takes for an array to the array itself."""
        return ()

    def attribute(self, owner: Any, name: str) -> tuple[Step, ...]:  # noqa: ARG002
        """The steps with which a call reads an attribute of an object."""
        return (name,)

    def is_read(self, value: Any) -> bool:  # noqa: ARG002
        """
        Whether calls read a compile-time argument anew, so that it may be another object of its type in each call.
        Otherwise the object itself is compiled in.
        """
        return False

    def program_of(self, callee: Any) -> DaceProgram | None:
        """The program that a call of an object in another program calls; None if it is none of DaCe's."""
        return program_of(callee)


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What another package has made of a program: the SDFG as it was compiled, and the library."""

    sdfg: dace.SDFG
    library: Path
