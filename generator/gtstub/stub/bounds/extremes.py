"""The least and the greatest value that an expression takes over all rounds of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gtstub.stub.bounds.access import BoundedLoop
from gtstub.stub.bounds.simplify import MOST_PARTS, parts_of
from gtstub.stub.signature.expressions import Expression, Extremum, Operation, Term, extremum, split


def extreme(value: Expression, loops: Sequence[BoundedLoop], which: Literal["min", "max"]) -> Expression | None:
    """The least or the greatest value over all rounds of the loops; None if it rises and falls with one variable."""
    found = [value]
    for loop in reversed(loops):  # An inner loop may end at the variable of an outer one.
        parts = [_at_ends(each, loop, which) for each in found]
        found = [part for each in parts for part in each or ()]
        if None in parts or len(found) > MOST_PARTS:
            return None
    return found[0] if len(found) == 1 else extremum(which, found)


def _at_ends(value: Expression, loop: BoundedLoop, which: Literal["min", "max"]) -> list[Expression] | None:
    """Values without a loop's variable of which the least or the greatest one is that over all rounds."""
    direction = _direction(value, loop.variable)
    if direction is not None:
        end = loop.last if (direction > 0) == (which == "max") else loop.first
        return [value.replace({loop.variable: end}) if direction else value]
    parts = parts_of(value, which)
    if any(split(part, loop.variable) is None for part in parts if loop.variable in part.symbols):
        return None
    # The sign of what the variable is multiplied with is not known.
    return [part.replace({loop.variable: end}) for part in parts for end in (loop.first, loop.last)]


def extremes(
    first: Expression, last: Expression, loops: Sequence[BoundedLoop]
) -> tuple[Expression | None, Expression | None]:
    """The least value of the first of two expressions, and the greatest one of the last."""
    return extreme(first, loops, "min"), extreme(last, loops, "max")


def _direction(value: Expression, variable: str) -> int | None:
    """1 if an expression never falls as a variable rises, -1 if it never rises, 0 without it, None if it is unclear."""
    found = {sign for term, factor in value.terms if (sign := _of_term(term, variable, factor)) != 0}
    return None if len(found) > 1 or None in found else next(iter(found), 0)


def _of_term(term: Term, variable: str, factor: int) -> int | None:
    sign = 1 if factor > 0 else -1
    if isinstance(term, str):
        return sign if term == variable else 0
    if isinstance(term, Operation) and term.divisor:
        inner = _direction(term.left, variable)
        return None if inner is None else sign * inner
    if not isinstance(term, Extremum):
        return None if variable in Expression(0, ((term, 1),)).symbols else 0
    found = {each for part in term.of if (each := _direction(part, variable)) != 0}
    inner = next(iter(found), 0)
    return None if len(found) > 1 or inner is None else sign * inner
