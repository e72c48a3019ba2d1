"""Expressions and conditions in C."""

from __future__ import annotations

import pytest

from gtstub.stub.codegen.expressions import bits, c_condition, c_expression
from gtstub.stub.signature.model import Condition
from tests.support.signatures import value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("-7", "-7"),
        (f"{2**40}", f"INT64_C({2**40})"),
        ("a", "a_"),
        ("-a", "-a_"),
        ("a - 1", "a_ - 1"),
        ("b - a + 2", "-a_ + b_ + 2"),
        ("2*a + 3*b", "2 * a_ + 3 * b_"),
        ("min(a, b)", "gts_min(a_, b_)"),
        ("2*int_floor(a*b - 1, 3)", "2 * ((a_ * b_ - 1) / 3)"),
        ("int_ceil(a, 3)", "((a_ + 2) / 3)"),
        ("max(a, b + 1, 0) - c", "-c_ + gts_max(0, gts_max(a_, b_ + 1))"),
    ],
)
def test_expression(text: str, expected: str) -> None:
    assert c_expression(value(text)) == expected


def test_condition() -> None:
    assert c_condition(Condition(value("a + 1"), "==", value("b"))) == "a_ + 1 == b_"
    assert c_condition(Condition(value("flag"), "!=", value("0"))) == "flag_ != 0"


def test_columns_are_bits() -> None:
    assert bits((0, 1, 5)) == 0b100011
    assert bits((63,)) == 2**63


def test_expressions_of_64_bit_scalars_are_wide() -> None:
    assert c_expression(value("min(a, b) - 1"), is_wide=True) == "gts_wide_min(a_, b_) - 1"
    assert c_condition(Condition(value("max(a, 3)"), "<", value("b")), is_wide=True) == "gts_wide_max(3, a_) < b_"


def test_wrapped_values_are_casts() -> None:
    assert c_expression(value("uint32(n - 2) + 1")) == "(int64_t)(uint32_t)(n_ - 2) + 1"
    assert c_expression(value("uint64(n - 2)"), is_wide=True) == "(gts_wide)(uint64_t)(n_ - 2)"
