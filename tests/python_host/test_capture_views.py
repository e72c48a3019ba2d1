"""Captures of methods that make views of their arrays in each call: the same elements of the same object."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


class Model:
    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.x, self.y = np.arange(1.0, 25.0).reshape(4, 6), np.zeros((4, 6))
        self.memory = bytearray(8 * 6)
        self.pages = mmap.mmap(-1, 8 * 6)


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


VIEWS: dict[str, Callable[[Model], Any]] = {
    "section": lambda model: model.y[1],
    "section of a section": lambda model: model.y[1:][0][::1],
    "ellipsis": lambda model: model.y[1, ...],
    "transposed twice": lambda model: np.transpose(np.transpose(model.y))[2],
    "reshaped": lambda model: model.y.reshape(-1)[6:12],
    "bytearray": lambda model: np.frombuffer(model.memory),
    "memoryview": lambda model: np.asarray(memoryview(model.memory).cast("d")),
    "pages": lambda model: np.frombuffer(model.pages),
}


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_view_in_each_call(view: str, model: Model) -> None:
    made = VIEWS[view]
    step = gtstub.capture(lambda: model.scale(model.x[2], 2.0, made(model)))
    made(model)[:] = 0.0
    step()
    assert made(model).tolist() == (2 * model.x[2]).tolist()


def test_what_the_method_changes_besides_is_found(model: Model) -> None:
    def run() -> None:
        model.scale(model.x[2], 2.0, model.y[1])
        model.y[1, 0] = model.y[1, -1]
        model.scale(model.y[1], 2.0, model.y[2])

    with pytest.raises(
        CaptureError, match=r"between position 1 \('scale'\) and position 2 \('scale'\), something other"
    ):
        gtstub.capture(run)


def other_row(model: Model, rows: list[int] = [0, 1, 0, 1, 0]) -> Any:  # noqa: B006
    return model.y[rows.pop()]


DIFFERENT: dict[str, Callable[[Model], Any]] = {
    "allocated": lambda _: np.zeros(6),
    "view of what was allocated": lambda _: np.zeros((4, 6))[1],
    "another row": other_row,
}


@pytest.mark.parametrize("view", DIFFERENT)
def test_other_memory_is_refused(view: str, model: Model) -> None:
    with pytest.raises(CaptureError) as caught:
        gtstub.capture(lambda: model.scale(model.x[2], 2.0, DIFFERENT[view](model)), name="run")
    assert str(caught.value) == (
        "Step 'run' cannot be captured: argument 'out' of program 'scale' (position 1) was another object in the "
        "second call of the method: make it once, outside of the method."
    )
