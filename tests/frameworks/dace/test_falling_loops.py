"""Branches in loops that count down: DaCe 2.0.0a10 leaves out some that the loop reaches."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub


@dace.program
def halves(a: dace.float64[8]):
    for i in range(7, -1, -1):
        if i > 3:
            a[i] = 1.0
        else:
            a[i] = 2.0


@dace.program
def running(a: dace.float64[8]):
    for i in range(7, -1, -1):
        if i < 7:
            a[i] = a[i + 1] + 1.0


@dace.program
def nested(a: dace.float64[8]):
    for i in range(7, -1, -2):
        for j in range(i + 1):
            if i == 5:
                a[j] += 1.0
            if i != 7:
                a[j] += 3.0


@dace.program
def called(a: dace.float64[8]):
    halves(a)
    a[:] = a + 1.0


def thirds(a, k):
    for i in range(7, -1, -1):
        if i > 5:
            a[i] = 1.0
        elif i < 2:
            a[i] = 2.0
        else:
            a[i] += k


@dace.program
def called_in_a_map(a: dace.float64[8], rows: dace.float64[3, 8]):
    for j in dace.map[0:3]:
        thirds(rows[j], j)
    a[:] = rows[0] + rows[1] + rows[2]


stub = gtstub.program(halves)


@dace.program
def called_with_stub(a: dace.float64[8]):
    stub(a)
    a[:] = a + 1.0


@pytest.mark.parametrize("program", [halves, running, nested, called, called_with_stub], ids=lambda each: each.name)
def test_results(program: Any) -> None:
    a, expected = np.zeros(8), np.zeros(8)
    if program in (called, called_with_stub):  # which would call DaCe's own `halves`
        halves.f(expected)
        expected += 1.0
    else:
        program.f(expected)
    gtstub.program(program)(a)
    assert a.tolist() == expected.tolist()


def test_calls_in_a_map() -> None:
    a, rows, expected = np.zeros(8), np.zeros((3, 8)), np.zeros((3, 8))
    for j in range(3):
        thirds(expected[j], j)
    gtstub.program(called_in_a_map)(a, rows)
    assert rows.tolist() == expected.tolist()
    assert a.tolist() == expected.sum(axis=0).tolist()


def test_automatic_optimisation() -> None:
    optimised = dace.program(auto_optimize=True)(halves.f)
    message = r"Program '\w+' has a loop that counts down: the automatic optimisation of DaCe 2"
    with pytest.warns(UserWarning, match=message):
        gtstub.program(optimised)(np.zeros(8))
