"""
What a captured method does besides its programs, with the same values in each call: a halo exchange finds its halo
filled. It shows because method and step are compared from slightly other values, too.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.captures import warned
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub

SIZE = 8

libc = ctypes.CDLL(None)
libc.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Model:
    """Two programs: from the inner points of `a` to those of `b`, and from all points of `b` to `c`."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        build_library(folder)
        self.scale = _host.load(build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so")
        self.a, self.b, self.c = np.arange(1.0, SIZE + 1), np.zeros(SIZE), np.zeros(SIZE)
        self.first = self.a[1:-1], 2.0, self.b[1:-1]
        self.second = self.b, 3.0, self.c
        self.work: dict[int, Callable[[np.ndarray], object]] = {}

    def run(self) -> None:
        self.work.get(0, lambda _: None)(self.a)
        self.scale(*self.first)
        self.work.get(1, lambda _: None)(self.b)
        self.scale(*self.second)
        self.work.get(2, lambda _: None)(self.c)


@pytest.fixture
def model(tmp_path: Path, toolchain: Toolchain) -> Model:
    return Model(tmp_path, toolchain)


def by_slices(x: np.ndarray) -> None:
    x[0], x[-1] = x[-2], x[1]


def by_a_view(x: np.ndarray) -> None:
    halo = x.reshape(2, -1)[:, :: SIZE // 2 - 1]  # the first and the last element, and two in the middle
    halo[0, 0], halo[1, 1] = x[-2], x[1]


def by_a_library(x: np.ndarray) -> None:
    size = x.itemsize
    libc.memcpy(x.ctypes.data, x.ctypes.data + (SIZE - 2) * size, size)
    libc.memcpy(x.ctypes.data + (SIZE - 1) * size, x.ctypes.data + size, size)


def by_a_constant(x: np.ndarray) -> None:
    x[0] = x[-1] = 0.0


def by_a_buffer(x: np.ndarray, buffer: np.ndarray = np.zeros(2)) -> None:  # noqa: B008  a buffer that stays
    buffer[:] = x[-2], x[1]
    x[[0, -1]] = buffer


PLACES = {
    0: "before position 1 ('scale')",
    1: "between position 1 ('scale') and position 2 ('scale')",
    2: "after position 2 ('scale')",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("exchange", [by_slices, by_a_view, by_a_library, by_a_constant, by_a_buffer])
def test_an_exchange_is_found(exchange: Callable[[np.ndarray], object], place: int, model: Model) -> None:
    if place == 0:  # of an array that programs only read
        model.first = model.a, 2.0, model.b
    if place == 2:  # of an array that programs write in part
        model.c[:] = model.a
        model.first, model.second = (model.c, 2.0, model.b), (model.b[1:-1], 3.0, model.c[1:-1])
    model.work[place] = exchange
    with pytest.raises(CaptureError) as caught:
        gtstub.capture(model.run, name="run")
    text = str(caught.value)
    if place < 2:
        beginning = "Step 'run' does not do what the method does if its arrays begin with slightly other values: "
        assert text.startswith(beginning)
    assert f": {PLACES[place]}, something other than a program changes argument '" in text
    assert re.search(r"at 2 of 8 elements, first at \(0,\): \S+ in the method, \S+ in the step\.", text)


def test_the_arrays_are_as_after_one_call(model: Model) -> None:
    model.work[1] = by_a_buffer
    arrays = model.a, model.b, model.c
    model.run()
    expected = [array.tobytes() for array in arrays]
    model.b[:], model.c[:] = 0.0, 0.0
    with pytest.raises(CaptureError):
        gtstub.capture(model.run)
    assert [array.tobytes() for array in arrays] == expected


def test_parts_with_an_action_between_them(model: Model) -> None:
    """What the page says to do: a step of two captures, and the exchange between them."""

    def first() -> None:
        model.scale(*model.first)

    def second() -> None:
        model.scale(*model.second)

    step = gtstub.Step([gtstub.capture(first), gtstub.action(by_slices, model.b), gtstub.capture(second)])
    model.work[1] = by_slices
    model.a[:] = np.arange(SIZE) ** 3.0
    model.run()
    expected = model.c.copy()
    model.c[:], model.b[:] = 0.0, 0.0
    step()
    assert model.c.tobytes() == expected.tobytes()


def test_a_true_step_is_no_warning(model: Model) -> None:
    model.a[:] = 0.0, -0.0, 1.0, -1.0, 1e300, 5e-324, np.inf, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = gtstub.capture(model.run)
    model.run()
    expected = model.c.tobytes()
    model.c[:] = 7.0
    step()
    assert model.c.tobytes() == expected


# --- What cannot begin with other values ------------------------------------------------------------------------------


def test_a_method_that_refuses_other_values(model: Model) -> None:
    def check(b: np.ndarray) -> None:
        if b[0] != 0.0:
            raise LookupError("other values")

    model.work[1] = check
    assert warned(model.run) == (
        "Step 'run' was verified only with the values that its arrays have now: with other values, the method raises "
        "LookupError: other values."
    )


def test_a_method_that_refuses_other_values_of_what_it_reads(model: Model) -> None:
    def check(a: np.ndarray) -> None:
        if (a[1:-1] != np.arange(2.0, SIZE)).any():
            raise LookupError("other values")

    model.work = {0: check}
    assert warned(model.run) == (
        "Step 'run' was verified with other values only in arrays that its programs write: with other values, the "
        "method raises LookupError: other values."
    )
    model.work[1] = by_slices
    with pytest.raises(CaptureError, match=r"between position 1 \('scale'\) and position 2 \('scale'\), something"):
        gtstub.capture(model.run)


def test_a_method_that_decides_by_its_values(model: Model) -> None:
    def run() -> None:
        model.scale(model.a, 2.0, model.b)
        if model.a[0] == 1.0:
            model.scale(model.b, 3.0, model.c)

    assert warned(run) == (
        "Step 'run' was verified with other values only in arrays that its programs write: with other values in the "
        "second call, the first call of the method has called 2 programs, and the second one 1 program."
    )


def test_a_scalar_that_depends_on_values(model: Model) -> None:
    def run() -> None:
        model.scale(model.a, float(model.b[0] == 2.0), model.b)
        model.scale(model.a, 2.0, model.b)

    model.b[0] = 2.0
    assert "argument 'factor' of program 'scale' (position 1) was 1.0 in the first call, and 0.0 in" in warned(run)


def test_values_that_would_overflow(model: Model) -> None:
    model.a[:] = 1.0
    largest = float(np.finfo(np.float64).max)
    assert warned(lambda: model.scale(model.a, largest, model.b)) == (
        "Step 'run' was verified with other values only in arrays that its programs write: with other values, argument "
        "'out' of program 'scale' (position 1) is not finite."
    )


def test_read_only_arrays_keep_their_values(model: Model) -> None:
    before = model.a.copy()
    model.a.flags.writeable = False
    gtstub.capture(lambda: model.scale(model.a, 2.0, model.b))
    assert model.a.tobytes() == before.tobytes()


# --- Values that hide differences -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(model: Model, value: float) -> None:
    """NaN plus one is NaN: a comparison says nothing about such an array."""
    model.a[:] = value
    model.work[1] = lambda b: np.add(b, 1.0, out=b)
    assert warned(lambda: model.scale(model.a, 2.0, model.b)) == (
        "Step 'run' was verified with argument 'x' of program 'scale' (position 1) not finite at 8 of 8 elements, "
        "which hides differences."
    )
    assert "argument 'x' of program 'scale' (position 1) not finite at 6 of 6" in warned(
        lambda: model.scale(*model.first)
    )


def test_both_limits(model: Model) -> None:
    model.a[1:4] = np.nan

    def check(b: np.ndarray) -> None:
        if b[0] != 0.0:
            raise LookupError("other values")

    model.work[1] = check
    assert warned(model.run) == (
        "Step 'run' was verified only with the values that its arrays have now: with other values, the method raises "
        "LookupError: other values, and with argument 'x' of program 'scale' (position 1) not finite at 3 of 6 "
        "elements, which hides differences."
    )
