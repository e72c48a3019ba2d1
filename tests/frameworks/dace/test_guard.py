"""Check 'bounds' of programs of DaCe: indices from arrays, callbacks, arrays that closures have, and the map."""

from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from tests.support.own_cache import use_own_cache
from tests.support.recorded_dace import opaque

N, M = (dace.symbol(name) for name in "NM")

TABLE = np.arange(8.0)

SEEN: list[tuple[int, list[float]]] = []
"""The addresses and the elements of the arrays that a callback has got."""


@gtstub.program
@dace.program
def gather(x: dace.float64[M], index: dace.int64[N], out: dace.float64[N]):
    doubled = x * 2
    for i in dace.map[0:N]:
        out[i] = doubled[0] + x[index[i]]  # the line of the map


@gtstub.program
@dace.program
def scatter(index: dace.int64[N], out: dace.float64[M]):
    for i in range(N):
        out[index[i]] = TABLE[i] + 1


@opaque
def exchange(field: Any) -> None:
    SEEN.append((field.ctypes.data, field.tolist()))
    field[0] = field[-1]


@gtstub.program
@dace.program
def with_halo(x: dace.float64[N], out: dace.float64[N]):
    x[1:] = x[1:] + 1
    exchange(x)
    out[:] = x * 2


NAME = "tests_frameworks_dace_test_guard_gather"

LINE = next(
    number
    for number, line in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1)
    if line.endswith("# the line of the map")
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DaCe compiles in the current folder, and entries are made anew."""
    monkeypatch.chdir(tmp_path)
    use_own_cache(tmp_path / "cache", monkeypatch)
    for program in (gather, scatter, with_halo):
        program.clear()


@pytest.mark.parametrize(
    ("check", "index", "expected"),
    [
        ("bounds end", 6, "is read 2 elements after its end by the call"),
        ("bounds start", -3, "is read 3 elements before its start by the call"),
    ],
)
def test_indices_that_an_array_has(check: str, index: int, expected: str) -> None:
    x, indices, out = np.arange(5.0), np.array([4, 0, 2, 1, 3, 4, 4]), np.zeros(7)
    with gtstub.checks(check):
        gather(x, indices, out)
        assert np.array_equal(out, x[indices])
        indices[3], out[:] = index, 5
        with pytest.raises(RuntimeError) as caught:
            gather(x, indices, out)
    assert str(caught.value) == f"Argument 'x' of program '{NAME}' {expected}; check 'bounds' refuses this."
    assert (out == 5).all()


def test_the_map_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_BUILD_CHECKS", "1")
    x, indices, out = np.arange(5.0), np.array([4, 7, 2]), np.zeros(3)
    with gtstub.checks("bounds end"), pytest.raises(RuntimeError) as caught:
        gather(x, indices, out)
    assert str(caught.value) == (
        f"Argument 'x' of program '{NAME}' is read 3 elements after its end by map '{NAME}_{LINE - 1}' "
        f"(test_guard.py:{LINE - 1}); check 'bounds' refuses this."
    )


def test_writes_and_arrays_of_closures() -> None:
    indices, out = np.array([4, 0, 2]), np.zeros(5)
    with gtstub.checks("bounds start"):
        scatter(indices, out)
        assert np.array_equal(out, [2, 0, 3, 0, 1])
        indices[1] = -2
        with pytest.raises(RuntimeError, match=r"'out' of program '[a-z_]+' is written 2 elements"):
            scatter(indices, out)
    assert np.array_equal(out, [2, 0, 3, 0, 1])


def test_callbacks_change_the_arrays_of_the_call() -> None:
    results = []
    for check in ("", "bounds"):
        x, out = np.arange(6.0), np.zeros(6)
        with gtstub.checks(check):
            with_halo(x, out)
            with_halo(x, out)
        results.append((x, out))
    for plain, guarded in zip(*results, strict=True):
        assert np.array_equal(plain, guarded)
    assert results[0][0][0] == 7


def test_callbacks_see_the_arrays_of_the_host() -> None:
    """They get the object of the call, and the results that it has until then."""
    x = np.arange(6.0)
    SEEN.clear()
    with gtstub.checks("bounds"):
        with_halo(x, np.zeros(6))
        with_halo(x, np.zeros(6))
    address = x.ctypes.data
    assert [(address, [0, 2, 3, 4, 5, 6]), (address, [6, 3, 4, 5, 6, 7])] == SEEN
