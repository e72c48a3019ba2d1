"""Calls of what no stub can carry."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gtstub import _host
from gtstub.errors import CaptureError, CaptureWarning
from gtstub.frameworks.dace.call_arguments import Arguments
from gtstub.frameworks.dace.changes import Change, Watch
from gtstub.frameworks.dace.internals import fresh
from gtstub.frameworks.dace.structures import is_struct

if TYPE_CHECKING:
    from gtstub.frameworks.dace.program import StubbedProgram


class ByDace:
    """
    Calls a program through DaCe, in the place of a variant that no stub can carry. Once what the program reads differs
    from what it was then, the call chooses a variant again; with `has_struct`, once it passes no struct of ctypes. With
    `again`, which finds what the program reads now, it has DaCe parse the program again instead: what DaCe has compiled
    is not found by all that was compiled in.
    """

    def __init__(
        self,
        program: StubbedProgram,
        watch: Watch,
        *,
        has_struct: bool = False,
        again: Callable[[Arguments], Watch] | None = None,
    ) -> None:
        self._program = program
        self._watch = watch
        self._has_struct = has_struct
        self._again = again
        self._called = fresh(program.dace_program)

    def change(self, call: Arguments) -> Change | None:
        """What differs that the call finds; None if no stub can carry it."""
        if self._has_struct and not any(map(is_struct, call.by_name.values())):
            return Change("was called with a struct of ctypes", ())
        return None if self._again is not None else self._watch.change(call.by_name)

    def _refuse_step(self) -> None:
        """Refuses to be bound, and warns of a captured step, which would lack this call."""
        match _host.binding():
            case "bind":
                raise CaptureError(f"Program '{self._program.name}' cannot be bound: this call goes through DaCe.")
            case "capture":
                text = f"A captured step lacks a call of program '{self._program.name}', which goes through DaCe."
                warnings.warn(text, CaptureWarning, stacklevel=4)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self._program
        call = Arguments.of(self._called, args, kwargs)
        if self.change(call) is not None:
            program.forget()
            return program(*args, **kwargs)
        if self._again is not None and self._watch.change(call.by_name) is not None:
            self._watch, self._called = self._again(call), fresh(program.dace_program)
        self._refuse_step()
        program.fallback_calls += 1
        return self._called(*args, **kwargs)
