"""Locals of an NDSLRuntime, which NDSL lets nobody read but the runtime's own methods."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from ndsl.dsl.dace import orchestration
from ndsl.dsl.dace.dace_config import DaceConfig, DaCeOrchestration
from ndsl.dsl.ndsl_runtime import LocalState, NDSLRuntime
from ndsl.quantity import Local, Quantity

from gtstub.frameworks.ndsl import _Ndsl, orchestrate

SHAPE = (4, 3, 2)


def quantity(value: float) -> Quantity:
    return Quantity(np.full(SHAPE, value), ("x", "y", "z"), "m")


def config() -> DaceConfig:
    return DaceConfig(None, "numpy", DaCeOrchestration.BuildAndRun)


@dataclasses.dataclass
class Temporaries(LocalState):
    one: Local
    two: Local


class Smoothed(NDSLRuntime):
    """Has Locals of its own, in a list, and in a LocalState."""

    def __init__(self, configuration: DaceConfig) -> None:
        super().__init__(configuration)
        self.weight = quantity(10.0)
        self.doubled = self.make_local(quantity(0.0))
        self.kept = Temporaries(self.make_local(quantity(0.0)), self.make_local(quantity(0.0)))
        self.listed = self.make_local(quantity(0.0))

    def __call__(self, a, b):
        self.doubled[:] = a * 2.0
        self.kept.one[:] = self.doubled + self.weight
        for each in (self.kept.two, self.listed):
            each[:] = self.kept.one + 1.0
        b[:] = self.kept.two + self.listed


class Inside(NDSLRuntime):
    """Takes a LocalState of another runtime."""

    def __init__(self, configuration: DaceConfig) -> None:
        super().__init__(configuration)

    def __call__(self, a, state: Temporaries):
        state.one[:] = a + 1.0
        a[:] = state.one


class Outer(NDSLRuntime):
    """Passes Locals on to other runtimes."""

    def __init__(self, configuration: DaceConfig) -> None:
        super().__init__(configuration)
        self.smoothed = Smoothed(configuration)
        self.inside = Inside(configuration)
        self.between = self.make_local(quantity(0.0))
        self.kept = Temporaries(self.make_local(quantity(0.0)), self.make_local(quantity(0.0)))

    def __call__(self, a, b):
        self.smoothed(a, self.between)
        b[:] = self.between + 1.0
        self.inside(b, self.kept)


def made(kind: Any) -> Any:
    configuration = config()
    code = kind(configuration)
    orchestrate(obj=code, config=configuration)
    return code


def test_locals_are_read_as_by_ndsl() -> None:
    code, a, b = made(Smoothed), quantity(1.0), quantity(0.0)
    code(a, b)
    assert (b.data == 26.0).all()
    code.weight = quantity(100.0)
    code(b, a)
    assert (a.data == 306.0).all()
    for read in (lambda: code.doubled, lambda: code.kept.one):  # the stand-in has NDSL's check
        with pytest.raises(RuntimeError, match="Forbidden Local access"):
            read()


def test_a_runtime_that_calls_others() -> None:
    code, a, b = made(Outer), quantity(1.0), quantity(0.0)
    for _ in range(2):
        code(a, b)
        assert (b.data == 28.0).all()


def test_a_local_that_becomes_a_quantity_is_refused() -> None:
    code, a, b = made(Smoothed), quantity(1.0), quantity(0.0)
    code(a, b)
    code.doubled = quantity(1.0)
    with pytest.raises(ValueError, match=r"doubled.*Local.*Quantity"):
        code(a, b)


class Watched(Smoothed):
    """Decides itself, besides NDSL, what an attribute is."""

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__("listed" if name == "doubled" else name)


class Computed(Smoothed):
    """Has a property in the place of a Local."""

    @property
    def doubled(self) -> Any:
        return self.listed

    @doubled.setter
    def doubled(self, value: Any) -> None:
        vars(self)["doubled"] = value


def test_others_than_ndsl_decide_what_an_attribute_is() -> None:
    """The dict of the object has a Local that is not the attribute."""
    steps = {kind: _Ndsl().attribute(kind(config()), "doubled") for kind in (Smoothed, Watched, Computed)}
    assert steps == {Smoothed: ("__dict__", ("doubled",)), Watched: ("doubled",), Computed: ("doubled",)}


def test_ndsl_calls_the_same() -> None:
    """Without which the tests above would say nothing."""
    code, a, b = Smoothed(config()), quantity(1.0), quantity(0.0)
    assert isinstance(type(code).__call__, type(orchestration.dace_inhibitor))
    code(a, b)
    assert (b.data == 26.0).all()
