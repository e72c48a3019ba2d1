"""
Polynomials of symbols with integer coefficients: sizes and strides of the arrays of DaCe programs.

A signature contains them as text ('M*N + 1'). Equal polynomials have equal objects.
"""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Callable, Mapping

LARGEST_COEFFICIENT = 2**62
MOST_TERMS = 64
LARGEST_DEGREE = 16

Monomial = tuple[str, ...]
"""The names of the symbols that are multiplied, sorted; a name that occurs twice is squared."""


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """The sum of products of symbols, each with a coefficient that is not 0, in the order of the products."""

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def constant(self) -> int:
        return next((coefficient for names, coefficient in self.terms if not names), 0)

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(name for names, _ in self.terms for name in names)

    @property
    def is_constant(self) -> bool:
        return not self.symbols

    @property
    def linear(self) -> tuple[str, int, int] | None:
        """The symbol, its factor and the constant of 'factor*symbol + constant'; None for other polynomials."""
        products = [(names, factor) for names, factor in self.terms if names]
        match products:
            case [((name,), factor)]:
                return name, factor, self.constant
        return None

    def value(self, symbols: Mapping[str, int]) -> int:
        return sum(factor * math.prod(symbols[name] for name in names) for names, factor in self.terms)

    def __str__(self) -> str:
        return self.written(lambda name: name, "*")

    def written(self, symbol: Callable[[str], str], times: str) -> str:
        """The text in a language that writes symbols and the sign for 'times' in this way."""
        text = ""
        for names, coefficient in sorted(self.terms, key=lambda term: (not term[0], term[0])):  # The constant is last.
            sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
            number = [] if names and abs(coefficient) == 1 else [str(abs(coefficient))]
            text += sign + times.join([*number, *map(symbol, names)])
        return text or "0"


def linear(symbol: str, factor: int = 1, constant: int = 0) -> Polynomial:
    """The polynomial 'factor*symbol + constant'."""
    return Polynomial(((((), constant),) if constant else ()) + (((symbol,), factor),))


def from_tree(tree: ast.expr | None) -> Polynomial | None:
    """
    Reads a polynomial as Python and DaCe write it (`expressions.syntax_tree`); None if it is of another form or beyond
    the limits.
    """
    try:
        terms = None if tree is None else _read(tree)
    except RecursionError:
        return None
    return None if terms is None else Polynomial(tuple(sorted(terms.items())))


_Terms = dict[Monomial, int]


def _read(node: ast.expr) -> _Terms | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return _limited({(): number})
        case ast.Name(id=name):
            return {(name,): 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return None if (terms := _read(operand)) is None else _product(terms, {(): -1})
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _read(left), _read(right)
            return None if a is None or b is None else _combined(a, op, b)
    return None


def _combined(a: _Terms, op: ast.operator, b: _Terms) -> _Terms | None:
    match op:
        case ast.Add():
            return _sum(a, b)
        case ast.Sub():
            return None if (negative := _product(b, {(): -1})) is None else _sum(a, negative)
        case ast.Mult():
            return _product(a, b)
        case ast.Pow() if set(b) == {()} and 1 <= b[()] <= LARGEST_DEGREE:
            power: _Terms | None = a
            for _ in range(b[()] - 1):
                power = None if power is None else _product(power, a)
            return power
    return None


def _sum(a: _Terms, b: _Terms) -> _Terms | None:
    return _limited({names: a.get(names, 0) + b.get(names, 0) for names in (*a, *b)})


def _product(a: _Terms, b: _Terms) -> _Terms | None:
    found: _Terms = {}
    for left, factor in a.items():
        for right, other in b.items():
            names = tuple(sorted((*left, *right)))
            found[names] = found.get(names, 0) + factor * other
    return _limited(found)


def _limited(terms: _Terms) -> _Terms | None:
    kept = {names: coefficient for names, coefficient in terms.items() if coefficient}
    if len(kept) > MOST_TERMS or any(
        abs(coefficient) > LARGEST_COEFFICIENT or len(names) > LARGEST_DEGREE for names, coefficient in kept.items()
    ):
        return None
    return kept
