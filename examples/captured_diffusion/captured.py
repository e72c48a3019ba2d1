"""A method whose later calls are steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gtstub
from gtstub.errors import CaptureError

MOST = 64
"""Calls that are kept. A scalar that is another one in each call would make new ones for ever."""


class Captured:
    """
    Calls a method that calls programs of gtstub. The first call with some arguments becomes a step, which is compared
    with the method bit for bit; later calls with these very objects and scalars run the step. What is no step, because
    the method does more than call programs, stays a call of the method; `refusals` has the reasons.
    """

    def __init__(self, method: Callable[..., None]) -> None:
        self._method = method
        self._known: dict[tuple[Any, ...], tuple[Any, Callable[[], None]]] = {}
        self.refusals: list[str] = []
        self.log: list[gtstub.Step] | None = None
        """The steps that were run since it became a list, in their order."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._do((*args, *kwargs, *kwargs.values()), lambda: self._method(*args, **kwargs))

    def _do(self, objects: tuple[Any, ...], call: Callable[[], None]) -> None:
        """Runs the step that was captured for these objects and scalars, or does `call` and captures it."""
        key = tuple(map(_key, objects))
        if key in self._known:
            action = self._known[key][1]
            if self.log is not None and isinstance(action, gtstub.Step):
                self.log.append(action)
            action()
        elif len(self._known) < MOST:
            self._known[key] = objects, self._action(call)  # keeps the objects, so that their ids stay theirs
        else:
            call()

    def _action(self, call: Callable[[], None]) -> Callable[[], None]:
        """Does `call` once. Returns the step, or `call` if there is none."""
        try:
            return self._capture(call)
        except CaptureError as error:
            self.refusals.append(str(error))
            return call

    def _capture(self, call: Callable[[], None]) -> gtstub.Step:
        return gtstub.capture(call, name=self._method.__qualname__)

    @property
    def steps(self) -> list[gtstub.Step]:
        return [action for _, action in self._known.values() if isinstance(action, gtstub.Step)]


def _key(value: Any) -> Any:
    """What a value is known by: a scalar by type and value, an object by itself, as long as somebody keeps it."""
    return (type(value), value) if isinstance(value, bool | int | float | str) else id(value)
