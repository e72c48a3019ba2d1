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


def in_a_map(a: dace.float64[10], b: dace.float64[10]):
    for i in dace.map[0:1]:
        if a[i] > 0:
            for j in dace.map[9:-1:-1]:
                b[j] = a[j]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (falling_map, "has a negative step"),
        (above, "Memlet subset out-of-bounds"),
        (below, "Memlet subset negative out-of-bounds"),
        (at_the_size, "Memlet subset out-of-bounds"),
        (section, "Memlet subset out-of-bounds"),
        (in_a_loop, "Memlet subset out-of-bounds"),
        (in_a_map, "has a negative step"),
    ],
)
@pytest.mark.parametrize("fallback", [False, True])
def test_what_dace_refuses(function: Any, message: str, fallback: bool, tmp_path: Any, monkeypatch: Any) -> None:
    """Also in a directory that cannot be written, in which DaCe would save the SDFG."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "_dacegraphs").write_text("a file in its place")
    program = gtstub.program(function, fallback=fallback)
    memory = np.zeros(30)
    found = rf"^Program '\w+_{function.__name__}' cannot be compiled: DaCe refuses it: .*{message}"
    with pytest.raises(CompilationError, match=found) as caught:
        program(np.ones(10), memory[12:22])
    assert isinstance(caught.value.__cause__, InvalidSDFGError)
    assert "saved" not in str(caught.value)
    assert not memory.any()
    assert program.fallback_calls == 0


def test_no_file_is_left(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for function in (above, in_a_map):  # whose SDFG contains another one
        with pytest.raises(CompilationError):
            gtstub.program(function)(np.ones(10), np.zeros(10))
    assert not list(tmp_path.iterdir())


def test_a_program_that_is_not_validated() -> None:
    """Its entry is none for the same program that DaCe validates."""
    program = dace.program(above)
    program.validate = False
    a, b = -np.ones(10), np.zeros(10)
    gtstub.program(program)(a, b)
    assert not b.any()
    program.validate = True
    with pytest.raises(CompilationError, match="DaCe refuses it"):
        gtstub.program(program)(a, b)
