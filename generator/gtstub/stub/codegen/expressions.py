"""
Writes expressions in C: those and the conditions of bounds, whose symbols are variables of the type int64_t or gts_wide
with `_` after their names, so that no symbol hides another variable; and polynomials.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable

from gtstub.stub.plan.model import AxisValue, CallBounds
from gtstub.stub.signature.expressions import Atom, Expression, Extremum, Operation, Wrapped, syntax_tree
from gtstub.stub.signature.facts import Fact, written
from gtstub.stub.signature.model import Condition


def c_expression(value: Expression, is_wide: bool = False) -> str:
    """An expression: `2 * n_ - m_ + gts_min(a_, b_)`; with `gts_wide_min` if it `is_wide`."""
    return value.written(functools.partial(_atom, is_wide=is_wide), _number, " * ")


def c_condition(condition: Condition, is_wide: bool = False) -> str:
    """A condition: `a_ < b_`."""
    left, right = (c_expression(each, is_wide) for each in (condition.left, condition.right))
    return f"{left} {condition.relation} {right}"


def c_conditions(bounds: CallBounds, wide_slots: Collection[str], is_wide: bool) -> list[str]:
    """When bounds are checked: not if a scalar of 64 bits is too large for a product."""
    factors = (f"gts_is_factor({name}_)" for name in bounds.factors if name in wide_slots)
    return [*factors, *(c_condition(each, is_wide) for each in bounds.when)]


def c_fact(fact: Fact) -> str:
    """A condition on the slots of a call: `(s->dt > 0.5)`."""
    tree = syntax_tree(fact.text)
    assert tree is not None, "a fact is an expression"
    return written(tree, lambda name: f"s->{name}")


def c_polynomial(value: Expression, axes: Iterable[tuple[str, AxisValue]] = ()) -> str:
    """
    A polynomial of the slots of a call, and of the values of `axes`: `(uint64_t)s->M * (uint64_t)s->N + 1`. Unsigned
    numbers wrap around, so that no value of a symbol is undefined behaviour; the int64 that a check compares has the
    same bits.
    """
    known = dict(axes)

    def factor(atom: Atom) -> str:
        match atom:
            case Operation(which, left, right):
                return f"gts_{which}({c_polynomial(left, axes)}, {c_polynomial(right, axes)})"
            case str() if atom in known:
                axis = known[atom]
                member = {"size": "shape", "stride": "strides"}[axis.name]
                return f"(uint64_t)GTS_OF({axis.leaf.name})->{member}[{axis.axis}]"
        return f"(uint64_t)s->{atom}"

    # An unsigned number in place of the first one, if that is negative.
    return re.sub(r"^-(\d+)", r"-UINT64_C(\1)", value.written(factor, str, " * "))


def _atom(atom: Atom, *, is_wide: bool) -> str:
    kind = "gts_wide" if is_wide else "int64_t"
    if isinstance(atom, str):
        return f"{atom}_"
    if isinstance(atom, Wrapped):
        return f"({kind})({atom.dtype}_t)({c_expression(atom.of, is_wide)})"
    if isinstance(atom, Operation):
        assert atom.divisor, "bounds have no other operations"
        return f"(({c_expression(atom.numerator, is_wide)}) / {_number(atom.divisor)})"
    assert isinstance(atom, Extremum)
    *others, last = (c_expression(each, is_wide) for each in atom.of)
    function = f"gts_{'wide_' if is_wide else ''}{atom.which}"
    return "".join(f"{function}({each}, " for each in others) + last + ")" * len(others)


def _number(value: int) -> str:
    return f"{value}" if abs(value) < 2**31 else f"INT64_C({value})"


def bits(columns: tuple[int, ...]) -> int:
    """Columns as the bits of a word."""
    return sum(1 << column for column in columns)
