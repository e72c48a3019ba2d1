"""DaCe programs of complex numbers and of float16, held against numpy. Annotations are no texts here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import CacheError, SignatureError
from gtstub.tools.recorded.archive import archives
from tests.support.checkout import ROOT
from tests.support.cli import run

N = dace.symbol("N")

RANDOM = np.random.default_rng(3)

PHASE = 0.5 - 0.25j


def numbers(count: int, dtype: Any = np.complex128) -> Any:
    return (RANDOM.random(count) - 0.5 + 1j * RANDOM.random(count)).astype(dtype)


@gtstub.program
@dace.program
def rotate(a: dace.complex128[N], b: dace.complex64[N], z: dace.complex128, w: dace.complex64):
    a[:] = a * z + PHASE
    b[:] = b * w
    return np.conj(a), np.abs(a)


def rotated(a: Any, z: complex) -> Any:
    return a * z + PHASE


def test_arrays_scalars_results_and_constants() -> None:
    for count, z, w in ((4, 1 - 2j, 3j), (7, np.complex64(2), 2), (3, -1.5, np.complex128(1 + 1j))):
        a, b = numbers(count), numbers(count, np.complex64)
        expected, expected_b = rotated(a, z), b * np.complex64(w)
        conjugate, size = rotate(a, b, z, w)
        np.testing.assert_allclose(a, expected, rtol=1e-15)
        np.testing.assert_allclose(b, expected_b, rtol=1e-6)
        assert (conjugate.dtype, size.dtype) == (np.complex128, np.float64)
        np.testing.assert_allclose(conjugate, np.conj(a), rtol=1e-15)
        np.testing.assert_allclose(size, np.abs(a), rtol=1e-15)
    assert len(rotate._variants) == 1
    with pytest.raises(TypeError, match=r"'z' of program .* must be a 'complex128', not 'str'"):
        rotate(a, b, "1j", 1)
    with pytest.raises(TypeError, match=r"'a' of program .* must have dtype 'complex128', not 'float64'"):
        rotate(a.real.copy(), b, 1, 1)


def test_a_constant_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = numbers(4), numbers(4, np.complex64)
    rotate(a, b, 1j, 1)
    ((_, variant),) = rotate._variants
    manifest = variant.entry.manifest()
    assert manifest.baked["PHASE"] == "(0.5-0.25j)"
    variant.entry.load({"PHASE": PHASE})
    with pytest.raises(CacheError, match=re.escape('has PHASE = "(0.5-0.25j)" compiled in')):
        variant.entry.load({"PHASE": 0.5})
    before = a.copy()
    monkeypatch.setitem(globals(), "PHASE", 0.5 + 0.25j)
    with pytest.raises(ValueError, match="PHASE"):
        rotate(a, b, 1j, 1)
    assert np.array_equal(a, before)


# --- Without annotations ----------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def scaled(a, z):
    a[:] = a * z


def test_each_type_has_its_variant() -> None:
    for count, (dtype, z) in enumerate(
        ((np.complex128, 2 - 1j), (np.complex64, np.complex64(2 - 1j)), (np.complex128, 2.0)), 1
    ):
        a = numbers(5, dtype)
        expected = a * z
        scaled(a, z)
        np.testing.assert_allclose(a, expected, rtol=1e-6)
        assert len(scaled._variants) == count
    scaled(a, np.complex128(1j))
    assert len(scaled._variants) == count


# --- Callbacks --------------------------------------------------------------------------------------------------------

SEEN: list[Any] = []


def library_function(function: Any) -> Any:
    """Makes a function one that DaCe calls, and does not parse."""
    return function


@library_function
def turn(z, w):
    SEEN.append((z, w))
    return z * w


@library_function
def whole(a):
    SEEN.append(a)


@gtstub.program
@dace.program
def calling(a: dace.complex128[N], w: dace.complex64):
    for i in range(N):
        found: dace.complex128 = turn(a[i], w)
        a[i] = found
    whole(a)


def test_callbacks() -> None:
    a = numbers(3)
    expected = [complex(each) * complex(np.complex64(0.1 - 2j)) for each in a]
    before = a.tolist()
    SEEN.clear()
    calling(a, 0.1 - 2j)
    assert SEEN[:-1] == [(each, complex(np.complex64(0.1 - 2j))) for each in before]
    assert all(type(each) is complex for pair in SEEN[:-1] for each in pair)
    assert SEEN[-1] is a
    assert a.tolist() == expected


# --- Structures -------------------------------------------------------------------------------------------------------

MEMBERS = {"a": dace.complex128[N], "z": dace.complex128, "w": dace.complex64, "h": dace.float16[N]}
Wave = dace.data.Structure(MEMBERS, "Wave")


@gtstub.program
@dace.program
def members(wave: Wave, out: dace.complex128[N]):  # type: ignore[valid-type]
    out[:] = wave.a * wave.z
    wave.h[:] = wave.h + wave.h


class Waves:
    def __init__(self, z: Any) -> None:
        self.a, self.h, self.z, self.w = numbers(3), np.ones(3, np.float16), z, 1j


@pytest.mark.parametrize("z", [2j, np.complex128(2j), 1.5, np.complex64(2j)])
def test_structures(z: Any) -> None:
    wave, out = Waves(z), np.zeros(3, complex)
    members(wave, out)
    np.testing.assert_allclose(out, wave.a * z, rtol=1e-15)
    assert wave.h.tolist() == [2, 2, 2]


# --- float16 ----------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def halves(a: dace.float16[N], out: dace.float64[N]):
    for i in dace.map[0:N]:
        out[i] = a[i]
        a[i] = a[i] + a[i]


def test_arrays_of_float16() -> None:
    a = np.array([1, -0.5, 2**-24, 30000, np.nan], np.float16)
    expected, out = a + a, np.zeros(5)
    before = a.astype(np.float64)
    halves(a, out)
    assert np.array_equal(out, before, equal_nan=True)
    assert np.array_equal(a, expected, equal_nan=True)


def test_scalars_of_float16_are_refused() -> None:
    @gtstub.program
    @dace.program
    def scaled_by_half(a: dace.float64[N], h: dace.float16):
        a[:] = a * h

    with pytest.raises(SignatureError, match=r"'h' of SDFG .*must have one of the element types .* but has 'float16'"):
        scaled_by_half.compile()


# --- Checks and recordings --------------------------------------------------------------------------------------------


def test_checks() -> None:
    for bad, check, text in ((np.nan * 1j, "nan", "(nan+nanj)"), (0.5 - 3j, "range a=-2:2", "(1-3.25j)")):
        a, b = numbers(4), numbers(4, np.complex64)
        a[2] = bad
        with gtstub.checks(check), pytest.raises(RuntimeError, match=re.escape(f"is {text} at axis_0 2")):
            rotate(a, b, 1, 1)


RUN = f"""
import numpy as np
from {__name__} import rotate
rotate(np.arange(4) * (1 + 2j), np.ones(4, np.complex64), 1j, 0.5)
"""


def test_replays_compare_both_parts(tmp_path: Path) -> None:
    rotate(numbers(4), numbers(4, np.complex64), 1j, 1)
    ((_, variant),) = rotate._variants
    environment = {**os.environ, "GTSTUB_RECORD": str(tmp_path / "recording"), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", RUN], env=environment, check=True, timeout=300)
    (archive,) = archives(tmp_path / "recording")
    (call,) = archive.calls
    values = {value.leaf.path: value for value in call.values}
    assert archive.load(call, values["z"], "before") == 1j
    a = archive.load(call, values["a"], "after")
    assert a.tolist() == rotated(np.arange(4) * (1 + 2j), 1j).tolist()
    command = ("replay", str(tmp_path / "recording"), str(variant.entry.path), "--compare")
    assert run(*command).exit_code == 0
    file = archive.path / call.program.id / f"{call.program.id}_{values['a'].field}.dat"
    memory = np.memmap(file, np.complex128, offset=values["a"].after)
    memory[2] = complex(a[2].real, np.nextafter(a[2].imag, 100))
    memory.flush()
    found = run(*command, "--json")
    (worst,) = [each["worst"] for each in json.loads(found.stdout)["comparisons"] if each["worst"]]
    assert (found.exit_code, worst["index"], worst["ulp"]) == (1, [2], 1)
    assert worst["expected"] == [memory[2].real, memory[2].imag]
    assert worst["found"] == [a[2].real, a[2].imag]
    error = memory[2].imag - a[2].imag
    assert worst["absolute"] == pytest.approx(error, rel=1e-5)
    assert worst["relative"] == pytest.approx(error / 3.75, rel=1e-5)
    assert str(complex(a[2])) in run(*command).output
    assert run(*command, "--ulp", "1", "--plot", "plot.svg").exit_code == 0
    assert Path("plot.svg").stat().st_size > 0
