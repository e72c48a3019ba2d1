"""Arrays of a granule that are swapped while programs have sections of them alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gt4py.next import common

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.programs.granule.library import Library
from gtstub.programs.granule.verify import read_granule
from gtstub.tools.recorded.runtime import refusal, runtime
from tests.support.granules import LEVELS, ROWS, built, field
from tests.support.small_programs import I, K

pytestmark = pytest.mark.xdist_group("granule")

Array = np.ndarray[Any, Any]


class Halves:
    """Two calls, each with a part of the levels. No program has a whole array; a function has all of `a`."""

    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self.a, self.b = random.uniform(size=(ROWS, LEVELS)), random.uniform(size=(ROWS, LEVELS))
        self.out = np.zeros((ROWS, LEVELS))
        scale = common._field(np.array(0.75), domain=common.domain({}))
        with gtstub.capture() as step:
            for levels in (np.s_[:, :2], np.s_[:, 2:]):
                parts = [field(each[levels], I, K) for each in (self.a, self.b)]
                built()[0](*parts, scale, 0.5, field(self.out[levels], I, K), offset_provider={})
        self.step = gtstub.Step([*step, gtstub.action(self.touch, self.a)], "step")
        self.out[...] = 0.0

    def touch(self, array: Array) -> None:
        array[0, 0] += 1.0

    @property
    def arguments(self) -> dict[str, Array]:
        return {"a": self.a, "b": self.b, "out": self.out}


@pytest.fixture
def halves() -> Halves:
    return Halves()


@pytest.fixture
def library(halves: Halves, toolchain: Toolchain, tmp_path: Path) -> Iterator[Library]:
    granule = gtstub.Granule(
        "g", steps={"step": halves.step}, arguments=halves.arguments, hooks={"touch": halves.touch}
    )
    folder = granule.export(tmp_path / "g")
    compiled = tmp_path / "g.so"
    toolchain.start(folder / "g_granule.c", compiled).wait()
    opened = Library(compiled, read_granule(folder), folder)
    yield opened
    opened.close()


def test_all_sections_move(halves: Halves, library: Library) -> None:
    touched: list[int] = []

    def touch(_data: Any, arrays: Any) -> int:
        touched.append(arrays[0].data)
        library.array("a")[0, 0] += 1.0
        return 0

    own = {name: array.copy() for name, array in halves.arguments.items()}
    library.bind(own, {"touch": touch})
    assert runtime().gts_granule_swap(library._handle, b"a", b"b") == 0
    (step,) = library._description.steps
    library.run(step)
    halves.a[...], halves.b[...] = halves.b.copy(), halves.a.copy()
    halves.step()
    assert own["out"].tobytes() == halves.out.tobytes()
    assert own["b"].tobytes() == halves.a.tobytes()
    assert own["a"].tobytes() == halves.b.tobytes()
    assert touched == [own["b"].ctypes.data]
    assert library.array("a").ctypes.data == own["b"].ctypes.data


def test_a_refused_swap_changes_nothing(halves: Halves, library: Library) -> None:
    own = {name: array.copy() for name, array in halves.arguments.items()}
    own["b"].flags.writeable = False
    library.bind(own, {"touch": lambda _data, _arrays: 0})
    assert runtime().gts_granule_swap(library._handle, b"b", b"out") == -1
    assert str(refusal()) == (
        "Arrays 'b' and 'out' of granule 'g' cannot be swapped: one is read-only, and a step writes the other one. "
        "Export the granule with both in kept={...}."
    )
    assert library.array("b").ctypes.data == own["b"].ctypes.data
    (step,) = library._description.steps
    library.run(step)
    halves.step.actions = halves.step.actions[:2]
    halves.step()
    assert own["out"].tobytes() == halves.out.tobytes()
