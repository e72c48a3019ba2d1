"""DaCe 2.0.0a10 may lose branches in loops that count down: a warning says so."""

import re
import warnings
from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N = dace.symbol("N")


@dace.program
def falling(a: dace.float64[N]):
    for i in range(N - 1, -1, -1):
        if i == N - 1:
            a[i] = 1.0
        else:
            a[i] = a[i + 1] + 1.0


@dace.program
def called(a: dace.float64[N]):
    falling(a)


@dace.program
def rising(a: dace.float64[N]):
    for i in range(N):
        if i > 0:
            a[N - 1 - i] = a[N - i] + 1.0
        else:
            a[N - 1 - i] = 1.0
    for i in range(N - 1, -1, -1):
        a[i] = a[i] * 1.0


@pytest.mark.parametrize("program", [falling, called], ids=lambda each: each.name)
def test_a_condition_in_a_loop_that_counts_down(program: Any) -> None:
    message = r"Program '\w+' has a condition on 'i' in a loop that counts down \(.*test_falling_loops.py:18\)\. DaCe 2"
    a = np.zeros(4)
    with pytest.warns(UserWarning, match=message):
        gtstub.program(program)(a)
    assert a.tolist() == [4, 3, 2, 1]  # a condition that DaCe keeps


def test_other_loops() -> None:
    a = np.zeros(4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gtstub.program(rising)(a)
    assert [each for each in caught if re.search("counts down", str(each.message))] == []
    assert a.tolist() == [4, 3, 2, 1]
