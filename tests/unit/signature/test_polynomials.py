"""Polynomials of symbols: reading, writing, values, and what is none."""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.install import RUNTIME
from gtstub.stub.signature.expressions import (
    LARGEST_COEFFICIENT,
    LARGEST_DEGREE,
    MOST_TERMS,
    Expression,
    Operation,
    Product,
    polynomial,
    split,
)

NAMES = ("M", "N", "__a_0")


def read(text: str) -> Expression:
    found = polynomial(text)
    assert found is not None, text
    return found


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """The text of a polynomial, which is Python as well."""
    form = draw(st.sampled_from(("number", "name") if depth == 0 else ("name", "+", "-", "*", "**", "negative")))
    if form == "number":
        return str(draw(st.integers(-20, 20)))
    if form == "name":
        return draw(st.sampled_from(NAMES))
    left = draw(texts(depth=depth - 1))
    if form == "negative":
        return f"-({left})"
    if form == "**":
        return f"({left})**{draw(st.integers(1, 2))}"
    return f"({left}) {form} ({draw(texts(depth=depth - 1))})"


@given(text=texts(), values=st.lists(st.integers(-9, 9), min_size=len(NAMES), max_size=len(NAMES)))
def test_values_are_those_of_python(text: str, values: list[int]) -> None:
    symbols = dict(zip(NAMES, values, strict=True))
    found = read(text)
    assert found.evaluate(symbols) == eval(text, {}, symbols)
    assert read(str(found)) == found, "its text means the same"
    assert found.symbols <= set(NAMES)
    assert found.is_constant == (not found.symbols)


@given(text=texts(), other=texts())
def test_polynomials_are_equal_if_sympy_finds_them_equal(text: str, other: str) -> None:
    sympy = pytest.importorskip("sympy", reason="sympy comes with DaCe, without which the wheel is tested")
    names = {name: sympy.Symbol(name) for name in NAMES}
    difference = sympy.expand(sympy.sympify(f"{text} - ({other})", locals=names))
    assert (read(text) == read(other)) == (difference == 0)
    assert str(read(text) - read(other)) == str(read(str(difference)))


@given(text=texts(), new=texts(), values=st.lists(st.integers(-9, 9), min_size=len(NAMES), max_size=len(NAMES)))
def test_symbols_are_replaced_by_polynomials(text: str, new: str, values: list[int]) -> None:
    symbols = dict(zip(NAMES, values, strict=True))
    inner = symbols | {"N": read(new).evaluate(symbols)}
    assert read(text).replace({"N": read(new)}).evaluate(symbols) == read(text).evaluate(inner)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("N", "N"),
        ("1 + N", "N + 1"),
        ("N*2 - 3", "2*N - 3"),
        ("-N", "-N"),
        ("-1 - N", "-N - 1"),
        ("N*M", "M*N"),
        ("(N + 1)*(N - 1)", "N*N - 1"),
        ("N**2", "N*N"),
        ("N - N", "0"),
        ("N - N + 4", "4"),
        ("M + N*M + 2", "M + M*N + 2"),
        ("symbol(L, dtype=dace.int64)", "L"),
        ("2*symbol(L, dtype=dace.int64) + N", "2*L + N"),
        ("R**K", "R**K"),
        ("2**N*R**(-1 + K)*3", "3*2**N*R**(K - 1)"),
        ("ipow(R, K) - R**K", "0"),
        ("N // 2", "int_floor(N, 2)"),
        ("int_floor(N, 2) + floor(1/2*N)", "2*int_floor(N, 2)"),
        ("floor(1/2 + 1/2*N)", "int_floor(N + 1, 2)"),
        ("floor(1/M*N)", "int_floor(N, M)"),
        ("-1*floor(-1/2*N)", "-int_floor(-N, 2)"),
        ("ceiling(1/4*M*N)", "int_ceil(M*N, 4)"),
        ("int_ceil(N, 2)", "int_ceil(N, 2)"),
        ("floor(1/2*floor(1/3*N - 1/2))", "int_floor(int_floor(2*N - 3, 6), 2)"),
        ("floor(N)", "N"),
    ],
)
def test_texts(text: str, written: str) -> None:
    assert str(read(text)) == written


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("N", ("N", 1, 0)),
        ("3*N - 2", ("N", 3, -2)),
        ("5 - N", ("N", -1, 5)),
        ("7", None),
        ("M + N", None),
        ("M*N", None),
    ],
)
def test_linear(text: str, linear: tuple[str, int, int] | None) -> None:
    assert read(text).linear == linear


@pytest.mark.parametrize(
    "text",
    [
        "N / 2",
        "N % 2",
        "Min(N, 2)",
        "N**-1",
        "Mod(N, 2)",
        "floor(N % 2)",
        "floor(N, 2)",
        "ceiling(1/2*N + Min(N, 2))",
        "N**0",
        "2.5*N",
        "True",
        "a.b",
        "a[0]",
        "f()",
        "symbol()",
        "symbol('N')",
        "not N",
        "N <",
        "",
        str(LARGEST_COEFFICIENT + 1),
        f"{LARGEST_COEFFICIENT}*N + {LARGEST_COEFFICIENT}*N",
        f"N**{LARGEST_DEGREE + 1}",
        " + ".join(f"n{i}" for i in range(MOST_TERMS + 1)),
        "(" * 1000 + "N" + ")" * 1000,
        "2**" * 100 + "N",
        "floor(1/2*" * 100 + "N" + ")" * 100,
        "(" * 20 + "9" + "**16)" * 20,
        "(" * 20 + "N + 1" + ")**16" * 20,
        "max(" * 20 + "N" + "**16, 1)" * 20,
        "*".join(f"({' + '.join(f'{name}{i}' for i in range(40))})" for name in "abcdefgh"),
    ],
)
def test_what_is_no_polynomial(text: str) -> None:
    assert polynomial(text) is None


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)


@given(left=NUMBERS, right=NUMBERS)
def test_powers_and_quotients_are_those_of_the_runtime(left: int, right: int) -> None:
    library = ctypes.CDLL(str(RUNTIME))
    for which in ("power", "int_floor", "int_ceil"):
        function = getattr(library, f"gts_{which}")
        function.argtypes, function.restype = (ctypes.c_int64, ctypes.c_int64), ctypes.c_int64
        found = Operation(which, Expression(0, (("M", 1),)), Expression(0, (("N", 1),))).evaluate(
            {"M": left, "N": right}
        )
        if which == "int_ceil" and not -(2**63) <= left + right - 1 < 2**63:
            continue
        assert function(left, right) == (found + 2**63) % 2**64 - 2**63, which
        if which == "power" and 0 <= right < 64:
            assert found == min(left**right, 2**63 - 1) or left < 0
        if which == "int_floor" and right != 0:
            assert found == math.trunc(Fraction(left, right))


@given(text=texts())
def test_a_polynomial_is_split_at_a_symbol(text: str) -> None:
    whole, names = read(text), {name: Expression(0, ((name, 1),)) for name in NAMES}
    for name in NAMES:
        if (part := split(whole, name)) is not None:
            assert name not in part.factor.symbols | part.rest.symbols
            assert part.factor * names[name] + part.rest == whole
        else:
            times = {term.of.count(name) for term, _ in whole.terms if isinstance(term, Product)}
            assert name not in whole.symbols or max(times) > 1


def test_the_limits_themselves() -> None:
    for text in (str(LARGEST_COEFFICIENT), f"N**{LARGEST_DEGREE}", " + ".join(f"n{i}" for i in range(MOST_TERMS))):
        assert polynomial(text) is not None
