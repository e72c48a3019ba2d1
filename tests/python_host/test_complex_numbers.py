"""Complex numbers and float16 from Python: scalars by value, arrays of every kind, results and functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.support.calling_programs import CallingProgram
from tests.support.complex_programs import WAVES
from tests.support.signatures import K, array, field, program, sdfg

pytestmark = pytest.mark.sanitizer


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return WAVES.build(tmp_path_factory.mktemp("waves"), toolchain).load()


def call(
    waves: _host.Program,
    *,
    w: Any = 0j,
    x: Any = 1.0,
    z: Any = 0j,
    turn: Callable[..., Any] = lambda w, z: w * z,
    parts: Callable[..., Any] = lambda z: (z.conjugate(), 2 * z),
    wide: Any = None,
    half: Any = None,
) -> tuple[Any, Any]:
    """What the program writes."""
    wide = np.zeros(4, np.complex128) if wide is None else wide
    half = np.zeros(2, np.complex64) if half is None else half
    waves(wide, half, w, x, z, turn, parts)
    return wide, half


def test_values_arrive_and_come_back(waves: _host.Program) -> None:
    wide, half = call(waves, w=1 - 2j, x=0.5, z=3 + 4j)
    assert wide.tolist() == [3 + 4j, 1.5 + 2j, (1 - 2j) * (3 + 4j), 6 + 8j]
    assert half.tolist() == [1 - 2j, 3 - 4j]


# --- Scalars ----------------------------------------------------------------------------------------------------------


class Subclass(complex): ...


@pytest.mark.parametrize(
    "value",
    [
        1 - 2j,
        np.complex64(1 - 2j),
        np.complex128(1 - 2j),
        np.clongdouble(1 - 2j),
        Subclass(1 - 2j),
        2,
        -2.5,
        np.float32(0.5),
        np.float16(0.5),
        np.longdouble(0.5),
        np.int8(-3),
        np.uint64(9),
        complex(math.inf, -math.inf),
        np.clongdouble(complex(1, math.inf)),
    ],
)
def test_numbers_reach_the_sdfg_as_complex_numbers(waves: _host.Program, value: Any) -> None:
    assert call(waves, z=value)[0][0] == value
    assert call(waves, w=value)[1][0] == value


@given(st.complex_numbers(width=64), st.complex_numbers(width=128))
def test_every_bit_arrives(waves: _host.Program, w: complex, z: complex) -> None:
    for as_w, as_z in ((w, z), (np.complex64(w), np.complex128(z))):
        wide, half = call(waves, w=as_w, z=as_z, turn=lambda *_: 0, parts=lambda _: (0, 0))
        if not (math.isnan(w.real) or math.isnan(w.imag)):  # a conversion may change which NaN it is
            assert half[:1].tobytes() == np.complex64(w).tobytes()
        assert np.array_equal(half[:1], [np.complex64(w)], equal_nan=True)
        assert wide[:1].tobytes() == np.complex128(z).tobytes()


@pytest.mark.parametrize(("name", "dtype"), [("w", "complex64"), ("z", "complex128")])
@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (None, "NoneType"),
        ("1j", "str"),
        (np.array(1j), "numpy.ndarray"),
        (np.timedelta64(1, "s"), "numpy.timedelta64"),
    ],
)
def test_what_is_no_number_is_refused(waves: _host.Program, name: str, dtype: str, value: Any, type_name: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(waves, **{name: value})
    assert str(caught.value) == f"Argument '{name}' of program 'waves' must be a '{dtype}', not '{type_name}'."


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("w", complex(1e300, 1), "(1e+300+1j), which does not fit 'complex64'"),
        ("w", complex(0, -1e300), "(0-1e+300j), which does not fit 'complex64'"),
        ("w", 1e300, "(1e+300+0j), which does not fit 'complex64'"),
        ("w", 10**400, f"{str(10**400)[:100]}, which does not fit 'complex64'"),
        ("z", 10**400, f"{str(10**400)[:100]}, which does not fit 'complex128'"),
        ("z", np.clongdouble(np.longdouble("1e400")), "a number above 1.8e308, which does not fit 'complex128'"),
        ("z", np.longdouble("1e400"), "a number above 1.8e308, which does not fit 'complex128'"),
    ],
)
def test_numbers_that_would_become_infinite_are_refused(waves: _host.Program, name: str, value: Any, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        call(waves, **{name: value})
    assert str(caught.value) == f"Argument '{name}' of program 'waves' is {text}."


def test_a_real_number_is_not_given_a_complex_one(waves: _host.Program) -> None:
    for value in (1j, np.complex64(1), np.complex128(1)):
        with pytest.raises(TypeError, match="Argument 'x' of program 'waves' must be a 'float64', not '"):
            call(waves, x=value)


# --- Arrays -----------------------------------------------------------------------------------------------------------


class Exported:
    """An array that has DLPack alone."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **keywords: Any) -> object:
        return self._values.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("wrap", [lambda values: values, memoryview, Exported])
def test_arrays_of_other_libraries(waves: _host.Program, wrap: Callable[[Any], Any]) -> None:
    wide, half = np.zeros(4, np.complex128), np.zeros(2, np.complex64)
    call(waves, w=1j, z=2 + 1j, wide=wrap(wide), half=wrap(half))
    assert (wide[0], half[0]) == (2 + 1j, 1j)


def test_layouts(waves: _host.Program) -> None:
    whole = np.zeros((3, 8), np.complex128)
    assert call(waves, z=2 + 1j, wide=whole[1, ::-2])[0].tolist() == [2 + 1j, 2 + 1j, 0, 4 + 2j]
    assert np.count_nonzero(whole) == np.count_nonzero(whole[1, 1::2]) == 3


def test_arrays_need_the_alignment_of_their_parts(waves: _host.Program) -> None:
    memory = np.zeros(96, np.uint8)
    begin = -memory.ctypes.data % 16
    assert call(waves, z=1j, wide=memory[begin + 8 :][:64].view(np.complex128))[0][0] == 1j
    with pytest.raises(ValueError) as caught:
        call(waves, wide=memory[begin + 4 :][:64].view(np.complex128))
    assert str(caught.value) == (
        "Argument 'wide' of program 'waves' must be aligned to the size 8 of the parts of its elements."
    )


@pytest.mark.parametrize(
    ("wide", "found"),
    [
        (np.zeros(4, np.complex64), "complex64"),
        (np.zeros(4), "float64"),
        (np.zeros(4, np.clongdouble), "complex256"),
        (np.zeros(4, ">c16"), ">c16"),
        (memoryview(np.zeros(4, np.clongdouble)), "Zg"),
        (Exported(np.zeros(4, np.complex64)), "complex64"),
    ],
)
def test_other_types_are_refused(waves: _host.Program, wide: Any, found: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(waves, wide=wide)
    assert str(caught.value) == f"Argument 'wide' of program 'waves' must have dtype 'complex128', not '{found}'."


# --- Bound calls ------------------------------------------------------------------------------------------------------


def test_scalars_of_a_bound_call_can_be_changed(waves: _host.Program) -> None:
    wide, half = np.zeros(4, np.complex128), np.zeros(2, np.complex64)
    bound = waves.bind(wide, half, 1j, 2.0, 3j, lambda w, z: w * z, lambda z: (z, z))
    bound()
    assert (half[0], wide[0]) == (1j, 3j)
    bound.set(w=1 - 1j, z=np.complex64(5))
    bound()
    assert (half[0], wide[0], wide[1]) == (1 - 1j, 5, 10)


# --- float16 ----------------------------------------------------------------------------------------------------------

HALF = CallingProgram(
    sdfg(
        array("out", Axis(start=0, size=3, stride=1), dtype="float16", access="write"),
        array("x", Axis(start=0, size=3, stride=1), dtype="float16"),
        name="halves",
    ),
    program("halves", x=field(K, dtype="float16"), out=field(K, dtype="float16")),
    "    for (int i = 0; i < 3; ++i)\n        out[i] = x[2 - i];\n",
)


@pytest.mark.parametrize("wrap", [lambda values: values, memoryview, Exported])
def test_arrays_of_float16(wrap: Callable[[Any], Any], halves: Any) -> None:
    x, out = np.array([1, -0.5, 65504], np.float16), np.zeros(3, np.float16)
    halves(wrap(x), wrap(out))
    assert out.tolist() == [65504, -0.5, 1]
    with pytest.raises(TypeError, match="'out' of program 'halves' must have dtype 'float16', not 'float32'"):
        halves(wrap(x), np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="'out' of program 'halves' must have dtype 'float16', not 'uint16'"):
        halves(wrap(x), np.zeros(3, np.uint16))


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return HALF.build(tmp_path_factory.mktemp("halves"), toolchain).load()


def test_checks_of_float16(halves: _host.Program) -> None:
    for bad, check, text in (
        (math.nan, "nan", "nan"),
        (-math.inf, "min *=-1", "-inf"),
        (65504, "max *=65503", "65504"),
        (0.1, "range *=-1:0.05", "0.099975586"),
        (2**-24, "max *=0", "5.9604645e-08"),
    ):
        x, out = np.array([0, bad, 0], np.float16), np.zeros(3, np.float16)
        message = re.escape(f"Argument 'x' of program 'halves' is {text} at K 1 before the call")
        with gtstub.checks(check), pytest.raises(RuntimeError, match=message):
            halves(x, out)
    with gtstub.checks("nan; range *=-65504:65504"):
        halves(np.array([65504, -65504, 1], np.float16), out)
