"""Arrays that are compared bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from gtstub.util.bits import differences, digest

NAN_WITH_PAYLOAD = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]


@pytest.mark.parametrize(
    ("value", "other", "differ"),
    [(0.0, -0.0, True), (np.nan, np.nan, False), (np.nan, NAN_WITH_PAYLOAD, True), (1.0, 1.0, False)],
)
def test_bits_are_compared_and_not_values(value: float, other: float, differ: bool) -> None:
    array, changed = np.zeros((2, 3)), np.zeros((2, 3))
    array[1, 0], changed[1, 0] = value, other
    assert differences(array, changed)[0].tolist() == [False, False, False, differ, False, False]
    assert (digest(array) != digest(changed)) == differ


def test_the_order_in_memory_does_not_count() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert not differences(array, np.asfortranarray(array))[0].any()
    assert digest(array) == digest(np.asfortranarray(array))


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_arrays_with_one_element_or_none(shape: tuple[int, ...]) -> None:
    assert not differences(np.zeros(shape), np.zeros(shape))[0].any()
    assert digest(np.zeros(shape)) == digest(np.zeros(shape))
