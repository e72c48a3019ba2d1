"""Which programs a step of a granule calls, in which order, and with which arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gt4py.next import common


@dataclasses.dataclass(frozen=True)
class ProgramCall:
    """
    One call as the granule makes it: `callable` is what `setup_program` returned, `args` and `kwargs` what the granule
    passes; `bound` is what it bound before. `has_effect` says whether the call changed any field that was passed.
    """

    program: Any
    callable: Callable[..., None]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    bound: Mapping[str, Any]
    offset_provider: Mapping[str, Any]
    has_effect: bool = False

    @property
    def name(self) -> str:
        return str(self.program.__name__)

    def arguments(self) -> dict[str, Any]:
        """The whole program's arguments by name."""
        names = self.program.__gt_type__().definition.pos_or_kw_args
        return {**self.bound, **dict(zip(names, self.args, strict=False)), **self.kwargs}


class Observer:
    """
    Stands between a granule and `setup_program`: what it returns notes every call while `calls` is a list. `release`
    takes it out again.
    """

    def __init__(self, setup_program: Callable[..., Callable[..., None]]) -> None:
        self._setup_program = setup_program
        self.calls: list[ProgramCall] | None = None

    def setup_program(self, *, program: Any, **options: Any) -> Callable[..., None]:
        called = self._setup_program(program=program, **options)
        bound = {
            name: value
            for group in ("constant_args", "horizontal_sizes", "vertical_sizes")
            for name, value in (options.get(group) or {}).items()
        }
        return _Observed(self, ProgramCall(program, called, (), {}, bound, options.get("offset_provider") or {}))

    def observe(self, step: Callable[[], None]) -> list[ProgramCall]:
        """Makes a step, and returns the calls of it."""
        self.calls = calls = []
        step()
        self.calls = None
        return calls

    @staticmethod
    def release(granule: Any) -> None:
        """From now on the granule calls its programs directly."""
        for name, value in vars(granule).items():
            if isinstance(value, _Observed):
                setattr(granule, name, value.call.callable)


@dataclasses.dataclass
class _Observed:
    observer: Observer
    call: ProgramCall

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        if self.observer.calls is None:
            self.call.callable(*args, **kwargs)
            return
        arrays = [value.ndarray for value in (*args, *kwargs.values()) if isinstance(value, common.Field)]
        before = [array.copy() for array in arrays]
        self.call.callable(*args, **kwargs)
        has_effect = any(not np.array_equal(array, old) for array, old in zip(arrays, before, strict=True))
        self.observer.calls.append(dataclasses.replace(self.call, args=args, kwargs=kwargs, has_effect=has_effect))
