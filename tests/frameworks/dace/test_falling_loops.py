"""Branches in loops that count down. DaCe 2.0.0a10 leaves out some that these loops reach."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N = dace.symbol("N")


@gtstub.program
@dace.program
def numbers(a: dace.float64[8]):
    for i in range(7, -1, -1):
        if i > 3:
            a[i] = 1.0
        else:
            a[i] = 2.0


@gtstub.program
@dace.program
def scalars(a: dace.float64[N], n: dace.int32):
    for i in range(n - 1, 0, -2):
        if i < n - 1:
            a[i] = 1.0
        else:
            a[i] = 2.0


@gtstub.program
@dace.program
def sizes(a: dace.float64[N]):
    for i in range(N - 1, -1, -1):
        if i == N - 1:
            a[i] = 1.0
        else:
            a[i] = a[i + 1] + 1.0


@dace.program
def _inner(row: dace.float64[N]):
    for _i in range(2):
        for j in range(N - 1, -1, -1):
            if j >= 2:
                row[j] = row[j] + 1.0


@gtstub.program
@dace.program
def nested(a: dace.float64[3, N]):
    for k in dace.map[0:3]:
        _inner(a[k, :])


@pytest.mark.parametrize(
    ("program", "arguments", "expected"),
    [
        (numbers, (), [2, 2, 2, 2, 1, 1, 1, 1]),
        (scalars, (8,), [0, 1, 0, 1, 0, 1, 0, 2]),
        (sizes, (), [8, 7, 6, 5, 4, 3, 2, 1]),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_both_branches_run(program: Any, arguments: tuple[int, ...], expected: list[int]) -> None:
    a = np.zeros(8)
    program(a, *arguments)
    assert a.tolist() == expected


def test_in_a_program_that_is_called() -> None:
    a = np.zeros((3, 4))
    nested(a)
    assert a.tolist() == [[0, 0, 2, 2]] * 3
