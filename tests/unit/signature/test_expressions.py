"""Expressions over scalar arguments: reading, writing, arithmetic, and the limits within which they cannot overflow."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.stub.signature.expressions import (
    LARGEST_CONSTANT,
    LARGEST_FACTOR,
    LARGEST_SYMBOL,
    LARGEST_VALUE,
    MOST_TERMS,
    Expression,
    difference,
    extremum,
    parse,
    polynomial,
    symbol,
)

NAMES = ("a", "b", "__vn_K_range_0")


def read(text: str) -> Expression:
    found = parse(text)
    assert found is not None, text
    return found


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, Any]:
    """The text of an expression, and what Python computes of it."""
    form = draw(
        st.sampled_from(("number", "name") if depth == 0 else ("name", "+", "-", "*", "negative", "min", "max"))
    )
    if form == "number":
        text = str(draw(st.integers(-20, 20)))
    elif form == "name":
        text = draw(st.sampled_from(NAMES))
    else:
        left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
        match form:
            case "*":
                text = f"{draw(st.integers(-3, 3))}*({left})"
            case "negative":
                text = f"-({left})"
            case "min" | "max":
                text = f"{form}({left}, {right})"
            case _:
                text = f"({left}) {form} ({right})"
    return text


values = st.fixed_dictionaries({name: st.integers(-(2**31), 2**31 - 1) for name in NAMES})


@given(text=expressions(), values=values)
def test_expressions_have_the_values_that_python_computes(text: str, values: dict[str, int]) -> None:
    assert read(text).evaluate(values) == eval(text, {"min": min, "max": max}, dict(values))


@given(text=expressions())
def test_what_is_written_is_read_again(text: str) -> None:
    assert read(str(read(text))) == read(text)


@given(text=expressions(), values=values, new=expressions())
def test_symbols_are_replaced_by_expressions(text: str, values: dict[str, int], new: str) -> None:
    replaced = read(text).replace({"a": read(new)})
    assert replaced.evaluate(values) == read(text).evaluate({**values, "a": read(new).evaluate(values)})


@given(text=expressions(), other=expressions(), values=values)
def test_differences_are_constant_or_unknown(text: str, other: str, values: dict[str, int]) -> None:
    found = difference(read(text), read(other))
    assert found is None or found == read(text).evaluate(values) - read(other).evaluate(values)


def test_equal_sums_are_equal_and_cancel() -> None:
    assert read("b - 2*a + a + 1") == read("1 - a + b")
    assert read("max(a, b) - max(b, a) + 4") == Expression(4)
    assert difference(read("a + 3"), read("a")) == 3
    assert difference(read("a"), read("b")) is None
    assert str(read("1 - a + 3*b")) == "-a + 3*b + 1"
    assert read("min(a, max(b, 2)) + c").symbols == {"a", "b", "c"}


def test_products_of_sums_and_of_minima() -> None:
    a, b, least = symbol("a"), symbol("b"), read("min(a, b)")
    assert (a + b) * (a - b) == a * a - b * b
    assert (least + 1) * (least - 1) == least * least - 1
    assert str(least * b * 3 - a) == "-a + 3*b*min(a, b)"
    assert (least * b).symbols == {"a", "b"}
    assert (least * b * 3 - a).evaluate({"a": 5, "b": 2}) == 7
    assert (least * b).replace({"a": b + 1}) == b * b


def test_quotients_round_towards_0() -> None:
    assert str(read("int_ceil(a, 3) + b // 2")) == "int_ceil(a, 3) + int_floor(b, 2)"
    for a in range(-7, 8):
        assert read("a // 3").evaluate({"a": a}) == int(a / 3)
        assert read("int_ceil(b, 3)").replace({"b": symbol("a")}).evaluate({"a": a}) == int((a + 2) / 3)
        assert read("b // 3").replace({"b": Expression(a)}) == Expression(int(a / 3))
    assert read("b // 2").replace({"b": read("4*a - 2")}) == read("2*a - 1")


def test_names_in_products() -> None:
    assert read("a + b*c + max(d, 2*e*e // 3)").in_products == {"b", "c", "e"}


def test_extremes_leave_out_what_never_counts() -> None:
    assert extremum("max", [read("a + 1"), read("a - 1")]) == read("a + 1")
    assert extremum("min", [read("a + 1"), read("a - 1")]) == read("a - 1")
    assert extremum("max", [read("max(a, b) + 1"), read("c")]) == read("max(a + 1, b + 1, c)")
    assert extremum("max", [read("2*max(a, b)"), symbol("c")]) != read("max(a, b, c)")


def test_dace_writes_some_things_in_other_ways() -> None:
    assert read("-1 - __out_I_range_0 + i_end") == read("i_end - __out_I_range_0 - 1")
    assert read("Min(a, Max(b, 1))") == read("min(a, max(1, b))")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a b",
        "a +",
        "a // b",
        "a // -2",
        "a / 2",
        "a % 2",
        "a ** b",
        "a**2 * b**2",
        "65536 * a * b * c",
        "a * uint32(b)",
        "a << 1",
        "a if b else c",
        "a < b",
        "a and b",
        "not a",
        "+a",
        "~a",
        "1.5",
        "True",
        "'a'",
        "a.b",
        "a[0]",
        "f(a)",
        "min()",
        "min(*a)",
        "min(*a, b)",
        "min(a, b, key=c)",
        "abs(a)",
        "__import__('os').system('true')",
        "(a, b)",
        "lambda: a",
        "a := 1",
        "a\x00b",
        "(" * 300 + "a" + ")" * 300,
        "-" * 5000 + "a",
    ],
    ids=lambda text: repr(text)[:20],
)
def test_other_forms_are_not_read(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("large", [LARGEST_CONSTANT, -LARGEST_CONSTANT])
def test_constants_have_a_limit(large: int) -> None:
    one = 1 if large > 0 else -1
    assert read(str(large)) == Expression(large)
    assert parse(f"{large + one}") is None
    assert parse(f"a + {large} + {one}") is None
    assert parse(f"max(a, {large} + {one})") is None
    assert parse("9" * 4000) is None


@pytest.mark.parametrize("large", [LARGEST_FACTOR, -LARGEST_FACTOR])
def test_factors_have_a_limit(large: int) -> None:
    one = 1 if large > 0 else -1
    assert read(f"{large} * a").terms == (("a", large),)
    assert parse(f"{large + one}*a") is None
    assert parse(f"a*{large + one}") is None
    assert parse(f"{large}*a + {one}*a") is None
    assert parse(f"2*({large}*a)") is None
    assert parse(f"min(b, {large}*a + {one}*a)") is None


def test_expressions_have_a_limited_number_of_terms() -> None:
    fitting = " + ".join(f"s{i}" for i in range(MOST_TERMS - 1))
    assert len(read(fitting).terms) == MOST_TERMS - 1
    assert parse(f"{fitting} + t") is None
    assert parse(f"max({fitting}, 1)") is None
    assert parse(f"a{' ' * 5000}") is None


def test_factors_of_extremes_cannot_multiply_beyond_64_bits() -> None:
    assert parse(f"{LARGEST_FACTOR}*max(a, b)") is not None
    assert parse(f"{LARGEST_FACTOR}*max({LARGEST_FACTOR}*a, b)") is None
    assert parse(f"{LARGEST_FACTOR}*min({LARGEST_CONSTANT}, b)") is None
    assert parse("1000*min(a, 1000*max(b, 1000*min(a, b)))") is None
    assert parse(f"min(a, {LARGEST_FACTOR}*max({LARGEST_FACTOR}*a, b))") is None


@given(
    signs=st.lists(st.sampled_from((1, -1)), min_size=MOST_TERMS - 1, max_size=MOST_TERMS - 1),
    which=st.sampled_from((-LARGEST_SYMBOL, LARGEST_SYMBOL)),
)
def test_the_largest_expressions_fit_64_bits(signs: list[int], which: int) -> None:
    factor = LARGEST_VALUE // LARGEST_SYMBOL // MOST_TERMS
    text = " + ".join(f"{sign * factor}*s{i}" for i, sign in enumerate(signs)) + f" + {LARGEST_CONSTANT}"
    found = read(text)
    assert len(found.terms) == MOST_TERMS - 1
    assert abs(found.evaluate(dict.fromkeys((f"s{i}" for i in range(MOST_TERMS)), which))) < 2**63
    assert parse(text.replace(f"{factor}*s0", f"{8 * factor}*s0")) is None


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("uint32(n - 2)", 1, 2**32 - 1),
        ("uint32(n - 2)", 5, 3),
        ("uint64(n - 2) + 1", 1, 2**64),
        ("int8(2*n)", 100, -56),
        ("int16(n)", 2**15, -(2**15)),
        ("uint8(n)", -1, 255),
        ("max(7, uint32(n))", 3, 7),
        ("2*uint32(uint8(n) - 4)", 256, 2 * (2**32 - 4)),
    ],
)
def test_values_wrap_around_in_types_of_c(text: str, n: int, expected: int) -> None:
    found = read(text)
    assert str(found) == text
    assert found.symbols == {"n"}
    assert found.evaluate({"n": n}) == expected
    assert found.replace({"n": Expression(n)}) == Expression(expected)
    assert found.replace({"n": symbol("m")}) == read(re.sub(r"\bn\b", "m", text))


def test_equal_wrapped_values_cancel() -> None:
    assert read("uint32(n - 2) - uint32(-2 + n)") == Expression()
    assert difference(read("uint32(n - 2)"), read("n - 2")) is None
    assert parse("uint32(a, b)") is None
    assert parse(f"uint32({LARGEST_FACTOR + 1}*n)") is None
    assert polynomial("uint32(n)*m") is None


def test_integers_of_numpy() -> None:
    assert polynomial("10i32") == polynomial("10u8") == read("10")
    assert polynomial("2i64*n - 1i8") == read("2*n - 1")
    assert polynomial("x2i64 + 1") == read("1 + x2i64")
    for text in ("n - 1u32", "10i7", "0.5i32", "2.5f32"):  # the first one may wrap around in C++
        assert polynomial(text) is None
