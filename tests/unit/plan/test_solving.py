"""Symbols that follow from values of polynomials: what is found is right, and in order."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.stub.plan.solving import Quotient, solve, value_name
from gtstub.stub.signature.expressions import Expression, polynomial

NAMES = ("A", "B", "C", "D")


def read(text: str) -> Expression:
    found = polynomial(text)
    assert found is not None
    return found


def computed(found: list[Quotient], equations: list[Expression], symbols: Mapping[str, int]) -> None:
    """Each quotient has the value of its symbol, unless its divisor is 0."""
    values = {value_name(number): each.evaluate(symbols) for number, each in enumerate(equations)}
    for each in found:
        divisor = each.divisor.evaluate(values)
        assert each.numerator.evaluate(values) == divisor * symbols[each.symbol]
        assert each.divisor != Expression()
        values[each.symbol] = symbols[each.symbol]


@given(
    rows=st.lists(st.lists(st.integers(-3, 3), min_size=5, max_size=5), min_size=1, max_size=5),
    values=st.lists(st.integers(-9, 9), min_size=4, max_size=4),
)
def test_linear_systems(rows: list[list[int]], values: list[int]) -> None:
    """All symbols are found if the rank says that there is one solution."""
    sympy = pytest.importorskip("sympy", reason="sympy comes with DaCe, without which the wheel is tested")
    equations = [
        read(" + ".join(f"({each})*{name}" for each, name in zip(row, (*NAMES, "1"), strict=True))) for row in rows
    ]
    found = list(solve(equations, NAMES))
    computed(found, equations, dict(zip(NAMES, values, strict=True)))
    if sympy.Matrix([row[:4] for row in rows]).rank() == len(NAMES):
        assert {each.symbol for each in found} == set(NAMES)
        assert all(each.divisor.is_constant for each in found)


TERMS = st.sampled_from([*NAMES, "1", "A*B", "B*C", "A*A", "C*D", "2**D", "int_floor(A, 2)"])


@given(
    rows=st.lists(st.lists(st.tuples(st.integers(-3, 3), TERMS), min_size=1, max_size=3), min_size=1, max_size=4),
    values=st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_other_systems(rows: list[list[tuple[int, str]]], values: list[int]) -> None:
    equations = [read(" + ".join(f"({factor})*{term}" for factor, term in row)) for row in rows]
    computed(list(solve(equations, NAMES)), equations, dict(zip(NAMES, values, strict=True)))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["A", "A + B"], {"A": "#0", "B": "#1 - A"}),
        (["A*B", "A"], {"A": "#1", "B": "#0 / A"}),
        (["A*B", "B*C", "C"], {"C": "#2", "B": "#1 / C", "A": "#0 / B"}),
        (["A*B", "A", "A + B"], {"A": "#1", "B": "#2 - A"}),  # no division, by what may be 0
        (["A + B", "A - B"], {"B": "#0 - #1 / 2", "A": "#0 - B"}),
        (["A*B + A", "A*B"], {"B": "#1 / #0 - #1", "A": "#0 / B + 1"}),
        (["A + B", "A + B"], {}),
        (["A*A"], {}),
        (["2**A"], {}),
        (["2**A", "A + B", "B"], {"B": "#2", "A": "#1 - B"}),
    ],
)
def test_quotients(texts: list[str], expected: dict[str, str]) -> None:
    found = solve([read(text) for text in texts], NAMES)
    one = Expression(1)
    shown = {each.symbol: f"{each.numerator}" + ("" if each.divisor == one else f" / {each.divisor}") for each in found}
    assert list(shown.items()) == list(expected.items())
