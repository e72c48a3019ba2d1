"""
Finds symbols that follow from the sizes and strides of arrays.

Each equation says that a polynomial has a value, which is known when a program is called. `[N*M], [N]` has one unknown
symbol at a time: N is the second size, and M the first one divided by N. `[N + M], [N - M]` has not. Then one symbol is
eliminated: N is the first size minus M, so that the second one is the first one minus 2*M. All values are exact,
because a symbol is the quotient of two polynomials with integer coefficients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence, Set

from gtstub.stub.signature.expressions import Expression, Split, is_polynomial, split, symbol


@dataclasses.dataclass(frozen=True)
class Quotient:
    """
    The value of a symbol. The names in both polynomials are those of known symbols, of symbols that were solved before,
    and of the `value_name` of equations; `equation` is the last one that the symbol is computed from.
    """

    symbol: str
    numerator: Expression
    divisor: Expression
    equation: int


def value_name(equation: int) -> str:
    """The name of the value of an equation, which no symbol has."""
    return f"#{equation}"


def solve(equations: Sequence[Expression], unknown: Iterable[str]) -> Iterator[Quotient]:
    """
    The unknown symbols that follow from equations, in an order in which they can be computed. An equation that comes
    first is preferred.
    """
    zeros = [_Zero(each - symbol(value_name(number)), number) for number, each in enumerate(equations)]
    left = set(unknown)
    while (found := _next(zeros, left, tries_all=True)) is not None:
        left.remove(found.symbol)
        yield found


@dataclasses.dataclass(frozen=True)
class _Zero:
    """An expression that is 0 for the values of the symbols, with the last equation that it comes from."""

    value: Expression
    equation: int


def _next(zeros: Sequence[_Zero], unknown: Set[str], *, tries_all: bool = False) -> Quotient | None:
    """
    One of the unknown symbols. A constant divisor, which is never 0, is preferred. If each expression has several, one
    symbol is eliminated: the first one that has a constant factor, or each one in turn.
    """
    single = [
        _quotient(name, part, zero.equation)
        for zero in zeros
        if len(inside := zero.value.symbols & unknown) == 1
        for name in inside
        if (part := split(zero.value, name)) is not None
    ]
    if single:
        return min(single, key=lambda each: not each.divisor.is_constant)
    pivots = sorted(
        (not part.factor.is_constant, number, name)
        for number, zero in enumerate(zeros)
        for name in zero.value.symbols & unknown
        if (part := split(zero.value, name)) is not None
    )
    for _, pivot, name in pivots if tries_all else pivots[:1]:
        others = _without(name, zeros[pivot], [*zeros[:pivot], *zeros[pivot + 1 :]])
        if (found := _next(list(others), unknown - {name})) is not None:
            return found
    return None


def _quotient(name: str, part: Split, equation: int) -> Quotient:
    sign = -1 if part.factor.is_constant and part.factor.constant < 0 else 1
    return Quotient(name, part.rest * -sign, part.factor * sign, equation)


def _without(name: str, pivot: _Zero, zeros: Iterable[_Zero]) -> Iterator[_Zero]:
    """Expressions from which a symbol is eliminated; those where it has another form than in the pivot are left out."""
    whole = split(pivot.value, name)
    assert whole is not None
    for zero in zeros:
        if name not in zero.value.symbols:
            yield zero
        elif (part := split(zero.value, name)) is not None:
            value = part.rest * whole.factor - part.factor * whole.rest
            if is_polynomial(value):
                yield _Zero(value, max(zero.equation, pivot.equation))
