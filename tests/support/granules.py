"""Three tiny programs, a model of them with every kind of array that a granule can have, and hosts for its granule."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import common

import gtstub
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support import granule_programs as programs
from tests.support.small_programs import Edge, I, K, V2EDim, Vertex, gather

Array = np.ndarray[Any, Any]

ROWS, LEVELS, EDGES, VERTICES, POINTS = 4, 5, 6, 4, 7


@functools.cache
def built() -> tuple[Any, Any, Any]:
    """The programs `mix`, `gather` and `relax`, built once."""
    backend = make_backend(gpu=False)
    return programs.mix.with_backend(backend), gather.with_backend(backend), gtstub.program(programs.relax)


def field(array: Array, *dims: Any, start: int = 0) -> Any:
    """A field with the memory of an array. Its first axis begins at `start`."""
    ranges = {
        dim: (start if axis == 0 else 0, size + (start if axis == 0 else 0))
        for axis, (dim, size) in enumerate(zip(dims, array.shape, strict=True))
    }
    return common._field(array, domain=common.domain(ranges))


class Model:
    """
    Arrays and steps. `run` has a hook, a step inside it, sections of `u` and `w`, an origin, a zero-dimensional field,
    a table, and programs of gt4py and DaCe; `first` has one program.
    """

    def __init__(self, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.u, self.w = self.new(ROWS, LEVELS), self.new(ROWS, LEVELS)
        self.line = self.new(POINTS)
        self.edges, self.vertices = self.new(EDGES, LEVELS), np.zeros((VERTICES, LEVELS))
        self.table = self.random.integers(0, EDGES, (VERTICES, 2), dtype=np.int32)
        self.coefficients = self.new(ROWS, LEVELS - 1)  # kept, not written
        self.work = np.zeros((ROWS, LEVELS - 1))  # kept, written, zero
        self.history = self.new(POINTS)  # kept, written, not zero
        self.weights = self.new(VERTICES, 2)
        self.hook_calls, self.calls_to_exchange = 0, itertools.count()
        self.make_steps()

    def new(self, *shape: int) -> Array:
        return self.random.uniform(-1.0, 1.0, shape)

    def exchange(self, array: Array) -> None:
        """A hook: what it does is exact."""
        self.hook_calls += 1
        next(self.calls_to_exchange)
        array[0], array[-1] = array[-2].copy(), array[1].copy()

    def make_steps(self) -> None:
        mix, gather_, relax = built()
        scale = common._field(np.array(0.75), domain=common.domain({}))
        provider = {"V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=self.table)}
        self.table = provider["V2E"].ndarray  # a copy
        with gtstub.capture() as begin:
            mix(
                field(self.u[:, 1:], I, K, start=2),
                field(self.coefficients, I, K, start=2),
                scale,
                0.5,
                field(self.work, I, K, start=2),
                offset_provider={},
            )
            relax(self.line, self.history, 0.25)
        with gtstub.capture() as inner:
            mix(
                field(self.w[:, ::2], I, K),
                field(self.u[:, ::2], I, K),
                scale,
                0.5,
                field(self.w[:, ::2], I, K),
                offset_provider={},
            )
        with gtstub.capture() as end:
            mix(field(self.u, I, K), field(self.w, I, K), scale, 0.5, field(self.w, I, K), offset_provider={})
            gather_(
                field(self.edges, Edge, K),
                field(self.weights, Vertex, V2EDim),
                field(self.vertices, Vertex, K),
                offset_provider=provider,
            )
            relax(self.history, self.line, 0.125)
        with gtstub.capture() as first:
            mix(
                field(self.work, I, K),
                field(self.coefficients, I, K),
                scale,
                0.5,
                field(self.u[:, :-1], I, K),
                offset_provider={},
            )
        self.run = gtstub.Step([*begin, gtstub.action(self.exchange, self.w), inner, *end], "run")
        self.first = gtstub.Step([*first], "first")

    @property
    def arguments(self) -> dict[str, Array]:
        return {
            "u": self.u,
            "w": self.w,
            "line": self.line,
            "edges": self.edges,
            "vertices": self.vertices,
            "v2e": self.table,
        }

    def granule(self, **changes: Any) -> gtstub.Granule:
        options = {
            "steps": {"run": self.run, "first": self.first},
            "arguments": self.arguments,
            "scalars": ["factor"],
            "hooks": {"exchange": self.exchange},
            "kept": {"coefficients": self.coefficients, "work": self.work, "history": self.history},
        }
        return gtstub.Granule("tiny", **{**options, **changes})


@dataclasses.dataclass(frozen=True)
class Exported:
    """A granule's folder, which tests must not change, and a model as it was then."""

    folder: Path
    model: Model


def exported(folder: Path, **changes: Any) -> Exported:
    model = Model()
    return Exported(model.granule(**changes).export(folder), model)
