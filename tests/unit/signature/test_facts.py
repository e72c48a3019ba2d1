"""Facts: which conditions on scalars C means as Python does, and how C writes them."""

from __future__ import annotations

import ast

import pytest

from gtstub.stub.codegen.expressions import c_fact
from gtstub.stub.signature.facts import Fact, fact_text

NAMES = {"dt": "dt", "flag": "flag", "n": "n"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("dt > 0.5", "(s->dt > 0.5)"),
        ("not flag", "!s->flag"),
        ("dt * 2.0 <= n - 1", "((s->dt * 2.0) <= (s->n - 1))"),
        ("flag and dt != -0.5 or n == 3", "((s->flag && (s->dt != -0.5)) || (s->n == 3))"),
        ("True", "1"),
        ("-(-n) > 2", "(-(-s->n) > 2)"),
        ("dt - -n > -1", "((s->dt - -s->n) > -1)"),
    ],
)
def test_facts_are_written_in_c(text: str, written: str) -> None:
    fact = Fact("holds", text)
    assert fact_text(text, NAMES) == ast.unparse(ast.parse(text))
    assert c_fact(fact) == written


def test_names_are_replaced() -> None:
    assert fact_text("(x>.5)", {"x": "dt"}) == "dt > 0.5"
    assert Fact("holds", "dt > 0.5 or flag").symbols == {"dt", "flag"}


@pytest.mark.parametrize(
    "text",
    [
        "0 < dt < 1",  # C compares the result of the first one
        "n // 2 == 1",  # rounds otherwise
        "dt / n > 1",
        "n % 2 == 1",
        "n ** 2 > 1",
        "sqrt(dt) > 1",
        "other > 0",
        "dt > 'a'",
        "dt is n",
        "dt if flag else n",
        "dt >",
        "",
        "not " * 3000 + "flag",
    ],
)
def test_other_conditions_are_no_facts(text: str) -> None:
    assert fact_text(text, NAMES) is None
