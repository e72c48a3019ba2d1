"""Calls of DaCe programs through gtstub, compared with DaCe's own calls of the same programs on copies."""

from __future__ import annotations

from typing import Any

import numpy as np


def copied(value: Any) -> Any:
    """A copy of an array has the same strides; other values are not copied."""
    if not isinstance(value, np.ndarray):
        return value
    made = np.lib.stride_tricks.as_strided(np.zeros(1 + _extent(value), value.dtype), value.shape, value.strides)
    made[...] = value
    return made


def check_like_dace(program: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `program` both ways: the arguments must be the same afterwards, and the results as well."""
    ours, theirs = [copied(each) for each in args], [copied(each) for each in args]
    our_names = {name: copied(value) for name, value in kwargs.items()}
    their_names = {name: copied(value) for name, value in kwargs.items()}
    found = program(*ours, **our_names)
    check_same(found, program.dace_program(*theirs, **their_names))
    check_same(ours, theirs)
    check_same(list(our_names.values()), list(their_names.values()))
    return found


def check_same(found: Any, expected: Any) -> None:
    """Types, shapes, and each bit."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
    else:
        assert found is expected or (type(found) is type(expected) and found == expected)


def _extent(array: Any) -> int:
    """Elements after the first one."""
    return sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)) // array.itemsize
