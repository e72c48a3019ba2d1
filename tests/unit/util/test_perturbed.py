"""Slightly other values: all numbers change a little, signs and what is not finite stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gtstub.util.perturbed import can_change, perturb


def values_of(dtype: str) -> Any:
    info = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan]
    return np.array(parts, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_all_numbers_change_slightly(dtype: str) -> None:
    before = values_of(dtype)
    array = before.copy()
    perturb(array, 3)
    for part, old in ((array.real, before.real), (array.imag, before.imag))[: 1 + (before.dtype.kind == "c")]:
        finite = np.isfinite(old)
        assert np.array_equal(np.isfinite(part), finite)
        assert (part != old)[finite].all()
        assert np.array_equal(part[~finite], old[~finite], equal_nan=True)
        assert (part[old == 0] > 0).all()
        assert (np.signbit(part) == np.signbit(old))[finite & (old != 0)].all()
        amount = max(2e-3, 10 * float(np.finfo(part.dtype).eps))
        normal = finite & (np.abs(old) >= 1)
        assert (np.abs(part[normal] / old[normal] - 1) <= amount).all()


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (0,)])
def test_shapes_and_strides(shape: tuple[int, ...]) -> None:
    array = np.ones(shape).T
    assert can_change(array) is (0 not in shape)
    if can_change(array):
        perturb(array, 0)
    assert (array != 1).all()
    wide = np.ones((4, 6))
    perturb(wide[::2, 1:5], 0)
    assert (wide == 1).sum() == 16


def test_the_same_seed_gives_the_same_values() -> None:
    one, other, third = (np.arange(100.0) for _ in range(3))
    for array, seed in ((one, 1), (other, 1), (third, 2)):
        perturb(array, seed)
    assert one.tobytes() == other.tobytes()
    assert (one != third).all()


def test_indices_and_masks_stay() -> None:
    assert not any(can_change(np.ones(3, dtype)) for dtype in ("int32", "int64", "uint8", "bool"))
