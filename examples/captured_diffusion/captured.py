"""A method whose later calls are steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gtstub
from gtstub.errors import CaptureError


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

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        key = tuple(key_of(value) for value in (*args, *kwargs, *kwargs.values()))
        if key in self._known:
            self._known[key][1]()
            return
        call = lambda: self._method(*args, **kwargs)  # noqa: E731  a name would be that of the step
        try:
            action: Callable[[], None] = gtstub.capture(call, name=self._method.__qualname__)
        except CaptureError as error:
            self.refusals.append(str(error))
            action = call
        self._known[key] = (args, kwargs), action  # keeps the objects, so that their ids stay theirs

    @property
    def steps(self) -> list[gtstub.Step]:
        return [action for _, action in self._known.values() if isinstance(action, gtstub.Step)]


def key_of(value: Any) -> Any:
    """What a value is known by: a scalar by type and value, an object by itself, as long as somebody keeps it."""
    return (type(value), value) if isinstance(value, bool | int | float | str) else id(value)
