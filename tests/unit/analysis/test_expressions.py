"""The sizes in SDFGs: their values, and names in place of others."""

from __future__ import annotations

import ast

import pytest

from gtstub.stub.signature.expressions import names_in
from gtstub.tools.memory import expressions

SIZES = {"N": 10, "M": 3, "zero": 0}


def value(text: str) -> int | None:
    tree = expressions.read(text)
    assert tree is not None
    return expressions.evaluate(tree, SIZES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10*Max(0, -M + N)", 70),
        ("Max(0, M - N)", 0),
        ("Min(N, M, 7) + max(1, M) - min(4, 2)", 4),
        ("(N + 1)//M", 3),
        ("N % M + Mod(N, 4)", 3),
        ("int_ceil(N, M)", 4),
        ("int_floor(N, M)", 3),
        ("ceiling(N/M)", 4),
        ("floor(N/M)", 3),
        ("N/5", 2),
        ("N**2", 100),
        ("-N + +M + Abs(-2)", -5),
        ("4096", 4096),
    ],
)
def test_values(text: str, expected: int) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "other",
        "Max(0, other)",
        "N/3",
        "N//zero",
        "N % zero",
        "N/zero",
        "N**N**N",
        "2**(-1)",
        "10000000000000*N*10000000*1000",
        "int_ceil(N)",
        "sin(N)",
        "N if M else 2",
        "1.5",
        "__import__('os')",
        "N[0]",
    ],
)
def test_what_is_unknown(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize("text", ["", "N +", "N; M", "(" * 500, "N" * 20_000])
def test_what_is_no_expression(text: str) -> None:
    assert expressions.read(text) is None


def test_names_of_the_outermost_sdfg() -> None:
    tree, outer = expressions.read("Max(0, n - i)*m*Max"), expressions.read("N + 1")
    assert tree is not None
    assert names_in(tree) == {"n", "i", "m", "Max"}
    inner = expressions.translate(tree, {"n": outer, "i": None}, others_are_known=False)
    assert ast.unparse(inner) == "Max(0, N + 1 - i?) * m? * Max?"
    assert ast.unparse(expressions.translate(inner, {}, others_are_known=False)) == "Max(0, N? + 1 - i?) * m? * Max?"
    top = expressions.translate(tree, {"n": outer}, others_are_known=True)
    assert ast.unparse(top) == "Max(0, N + 1 - i) * m * Max"


@pytest.mark.parametrize(
    ("text", "expected"), [("10*N*M", "80 * N * M"), ("N*M", "8 * N * M"), ("N + 1", "8 * (N + 1)"), ("3", "24")]
)
def test_products(text: str, expected: str) -> None:
    tree = expressions.read(text)
    assert tree is not None
    assert ast.unparse(expressions.times(8, tree)) == expected
