"""What DaCe refuses when it compiles a program, gtstub refuses, too, with DaCe's error as the cause."""

from typing import Any

import dace
import numpy as np
import pytest
from dace.sdfg.validation import InvalidSDFGError

import gtstub
from gtstub.errors import CompilationError

N = dace.symbol("N")


def falling_map(a: dace.float64[10], b: dace.float64[10]):
    for i in dace.map[9:-1:-1]:
        b[i] = a[i]


def above(a: dace.float64[10], b: dace.float64[10]):
    if a[0] > 0:
        b[10] = 1


def below(a: dace.float64[10], b: dace.float64[10]):
    if a[0] > 0:
        b[-11] = 1


def at_the_size(a: dace.float64[10], b: dace.float64[N]):
    if a[0] > 0:
        b[N] = 1


def section(a: dace.float64[10], b: dace.float64[10]):
    if a[0] > 0:
        b[0:12] = a[0:12]


def in_a_loop(a: dace.float64[10], b: dace.float64[10]):
    while a[0] > 0:
        b[11] = 1
        a[0] = -1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (falling_map, "has a negative step"),
        (above, "Memlet subset out-of-bounds"),
        (below, "Memlet subset negative out-of-bounds"),
        (at_the_size, "Memlet subset out-of-bounds"),
        (section, "Memlet subset out-of-bounds"),
        (in_a_loop, "Memlet subset out-of-bounds"),
    ],
)
@pytest.mark.parametrize("fallback", [False, True])
def test_what_dace_refuses(function: Any, message: str, fallback: bool, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)  # where DaCe saves the SDFG
    program = gtstub.program(function, fallback=fallback)
    memory = np.zeros(30)
    found = rf"^Program '\w+_{function.__name__}' cannot be compiled: DaCe refuses it: .*{message}"
    with pytest.raises(CompilationError, match=found) as caught:
        program(np.ones(10), memory[12:22])
    assert isinstance(caught.value.__cause__, InvalidSDFGError)
    assert not memory.any()
    assert program.fallback_calls == 0
