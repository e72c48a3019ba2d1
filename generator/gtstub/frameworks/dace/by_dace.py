"""Calls of what no stub can carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gtstub.frameworks.dace.call_arguments import Arguments
from gtstub.frameworks.dace.changes import Change, Watch
from gtstub.frameworks.dace.internals import fresh
from gtstub.frameworks.dace.structures import is_struct

if TYPE_CHECKING:
    from gtstub.frameworks.dace.program import StubbedProgram


class ByDace:
    """
    Calls a program through DaCe, in the place of a variant that no stub can carry. Once what the program reads differs
    from what it was then, the call chooses a variant again; with `has_struct`, once it passes no struct of ctypes.
    """

    def __init__(self, program: StubbedProgram, watch: Watch, *, has_struct: bool = False) -> None:
        self._program = program
        self._watch = watch
        self._has_struct = has_struct
        self._called = fresh(program.dace_program)

    def change(self, call: Arguments) -> Change | None:
        """What differs that the call finds; None if no stub can carry it."""
        if self._has_struct and not any(map(is_struct, call.by_name.values())):
            return Change("was called with a struct of ctypes", ())
        return self._watch.change(call.by_name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self._program
        if self.change(Arguments.of(self._called, args, kwargs)) is not None:
            program.forget()
            return program(*args, **kwargs)
        program.fallback_calls += 1
        return self._called(*args, **kwargs)
