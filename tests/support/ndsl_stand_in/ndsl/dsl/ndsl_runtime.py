"""Stand-in for ndsl.dsl.ndsl_runtime; see the package."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

from ndsl.dsl.dace.dace_config import DaceConfig
from ndsl.dsl.dace.orchestration import orchestrate
from ndsl.quantity import Local, Quantity, State


class NDSLRuntime:
    """The base of objects that NDSL orchestrates, and whose Locals only their own methods may read."""

    def __init__(self, dace_config: DaceConfig) -> None:
        """NDSL takes a factory of stencils, which has the configuration."""
        self._dace_config = dace_config

    def __init_subclass__(cls) -> None:
        init: Any = cls.__init__

        def and_orchestrate(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            if callable(self):
                orchestrate(obj=self, config=self._dace_config)

        cls.__init__ = and_orchestrate  # type: ignore[method-assign]

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if isinstance(found, Local):
            reader = _caller(inspect.currentframe())
            if reader is None or not isinstance(reader.f_locals.get("self"), type(self)):
                raise RuntimeError(f"Forbidden Local access: {name} called outside of {type(self).__name__}.")
        return found

    def make_local(self, quantity: Quantity) -> Local:
        """NDSL takes a factory of Quantities, and what the Quantity has."""
        return Local(quantity.data, quantity.dims, quantity.units)


class LocalState(State):
    """Locals that only methods of the runtime that has made it may read, and what they call."""

    def __post_init__(self) -> None:
        (self._parent_runtime, *_) = _runtimes(inspect.currentframe())

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if isinstance(found, Local) and self._parent_runtime not in _runtimes(inspect.currentframe()):
            raise RuntimeError(f"Forbidden Local access: {name} called outside of its runtime.")
        return found


def _caller(frame: FrameType | None) -> FrameType | None:
    return None if frame is None else frame.f_back


def _runtimes(frame: FrameType | None) -> list[NDSLRuntime]:
    found = []
    while frame is not None:
        if isinstance(reader := frame.f_locals.get("self"), NDSLRuntime):
            found.append(reader)
        frame = frame.f_back
    return found
