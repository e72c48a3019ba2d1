"""Captured steps: what they contain, and what a verification finds."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


class Model:
    """A granule of two programs."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        parts = build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so"
        self.double, self.triple = _host.load(*parts), _host.load(*parts)
        self.x, self.y = np.arange(1.0, 6.0), np.zeros(5)

    def run(self) -> None:
        self.double(self.x, 2.0, self.y)
        self.triple(self.y, 3.0, self.x)


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def test_a_block_becomes_a_step(model: Model) -> None:
    with gtstub.capture(name="granule") as step:
        model.run()
    assert model.x.tolist() == [6.0, 12.0, 18.0, 24.0, 30.0]
    step()
    assert model.x.tolist() == [36.0, 72.0, 108.0, 144.0, 180.0]
    assert str(step).splitlines() == [
        "Step 'granule'",
        "   action  writes  scalars",
        "1  scale   out     factor=2.0",
        "2  scale   out     factor=3.0",
    ]


def test_a_failed_block_is_no_step(model: Model) -> None:
    def fail() -> None:
        model.run()
        raise LookupError

    with pytest.raises(LookupError):
        gtstub.capture(fail)
    with gtstub.capture() as step:  # the thread does not capture any more
        model.run()
    assert len(step) == 2


def test_a_verified_method_has_run_once(model: Model) -> None:
    step = gtstub.capture(model.run)
    assert step.__name__ == "Model.run"
    assert model.x.tolist() == [6.0, 12.0, 18.0, 24.0, 30.0]
    step()
    assert model.x.tolist() == [36.0, 72.0, 108.0, 144.0, 180.0]


def test_a_lambda_has_the_name_of_the_function_around_it_and_its_line(model: Model) -> None:
    step = gtstub.capture(lambda: model.run())
    line = sys._getframe().f_lineno - 1
    around = "test_a_lambda_has_the_name_of_the_function_around_it_and_its_line"
    assert step.__name__ == f"{around} at test_capture.py:{line}"


def test_what_numpy_does_is_found(model: Model) -> None:
    def run() -> None:
        model.run()
        model.x[3] += 1.0
        model.run()

    with pytest.raises(CaptureError) as caught:
        gtstub.capture(run, name="run")
    assert str(caught.value) == (
        "Step 'run' does not do what the method does: between position 2 ('scale') and position 3 ('scale'), something "
        "other than a program changes argument 'x' of program 'scale' (position 3) at 1 of 5 elements, first at (3,): "
        "901.0 in the method, 900.0 in the step. A function that does this belongs there: "
        "gtstub.action(function, array)."
    )
    assert gtstub.capture(run, name="run", verify=False).__name__ == "run"


def test_what_differs_from_call_to_call_is_found(model: Model) -> None:
    factors = iter([2.0, 3.0, 2.0, -0.0, 0.0])
    with pytest.raises(CaptureError) as caught:
        gtstub.capture(lambda: model.double(model.x, next(factors), model.y), name="s")
    assert str(caught.value) == (
        "Step 's' cannot be captured: argument 'factor' of program 'scale' (position 1) was 2.0 in the first call, and "
        "3.0 in the second one of the method."
    )
    next(factors)
    with pytest.raises(CaptureError, match=r"was -0.0 in the first call, and 0.0 in the second one"):
        gtstub.capture(lambda: model.double(model.x, next(factors), model.y), name="s")
    with pytest.raises(CaptureError, match=r"argument 'out' .* was another object in the second call of the method"):
        gtstub.capture(lambda: model.double(model.x, 2.0, np.zeros(5)), name="s")
    programs = iter([model.double, model.triple])
    with pytest.raises(CaptureError, match=r"at position 1, the first call of the method has called program 'scale'"):
        gtstub.capture(lambda: next(programs)(model.x, 2.0, model.y), name="s")
    counts = iter([1, 2])
    with pytest.raises(CaptureError, match=r"has called 1 program, and the second one 2 programs."):
        gtstub.capture(lambda: [model.double(model.x, 2.0, model.y) for _ in range(next(counts))], name="s")


def test_nothing_captured_is_an_error(model: Model) -> None:
    with pytest.raises(CaptureError, match=r"Step 'step' has captured nothing: no program of gtstub was called"):
        gtstub.capture(lambda: None, name="step")
    with pytest.raises(RuntimeError, match=r"A capture cannot begin inside another one."):
        gtstub.capture(lambda: gtstub.capture(model.run))
    model.run()
    assert model.x.tolist() == [6.0, 12.0, 18.0, 24.0, 30.0]


def test_a_capture_that_another_thread_has_freed(model: Model) -> None:
    captures = [_host.begin_capture()]
    thread = threading.Thread(target=captures.clear)
    thread.start()
    thread.join()
    model.run()
    with gtstub.capture() as step:
        model.run()
    assert len(step) == 2


def test_a_capture_does_not_end_in_the_child_of_a_fork(tmp_path: Path, toolchain: Toolchain) -> None:
    capture = _host.begin_capture()
    child = os.fork()
    if child == 0:
        try:
            _host.end_capture(capture)
        except RuntimeError as error:
            os._exit(0 if str(error) == "A capture must end in the process in which it began." else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert _host.end_capture(capture) == []


def test_read_only_memory_that_changes_is_found(model: Model) -> None:
    memory = bytearray(model.x.tobytes())
    model.x, fixed = np.frombuffer(memory), np.frombuffer(memoryview(memory).toreadonly())

    def run() -> None:
        model.x += 1.0
        model.double(fixed, 2.0, model.y)

    with pytest.raises(CaptureError, match=r"argument 'x' of program 'scale' \(position 1\) is read-only, but"):
        gtstub.capture(run, name="run")


def test_arrays_that_cannot_be_copied_are_not_verified(model: Model) -> None:
    class Exchanged:
        __dlpack__ = model.x.__dlpack__
        __dlpack_device__ = model.x.__dlpack_device__

    exchanged = Exchanged()
    with pytest.raises(CaptureError, match=r"argument 'x' of program 'scale' \(position 1\) is of type '.*Exchanged'"):
        gtstub.capture(lambda: model.double(exchanged, 2.0, model.y), name="run")
