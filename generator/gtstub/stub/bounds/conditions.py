"""
Conditions on scalar arguments and on variables of loops, as DaCe's interstate edges, branches, loops and tasklets write
them.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from gtstub.stub.bounds.access import DATA_CONDITION, OTHER, SCALAR_CONDITION, AnyOf, Conditions, Scope
from gtstub.stub.bounds.wrapping import SIGNED, UNSIGNED, common_type, converted
from gtstub.stub.sdfg.model import words_in
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, difference, parse, symbol, syntax_tree
from gtstub.stub.signature.model import Condition

_UNKNOWN = {"__unknown_data_": DATA_CONDITION, "__unknown_scalars_": SCALAR_CONDITION, "__unknown_form_": OTHER}
"""The beginning of the names of symbols that stand for a condition of another form."""


def choice(text: str, scope: Scope, number: int) -> tuple[Conditions, Conditions]:
    """
    The conditions under which a text in Python is true, and those under which it is false. What is no relation of
    integers is a fact; a condition that is not understood is that an unknown symbol is not 0, which has this number.
    """
    match syntax_tree(text):
        case ast.Name(id=name) if name in scope.choices:
            return scope.choices[name]
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if name in scope.choices:
            true, false = scope.choices[name]
            return false, true
    depends_on_data = not (scope.data - scope.symbols.keys()).isdisjoint(words_in(text))
    if depends_on_data and scope.evaluates_both:
        return (), ()
    fact = None if depends_on_data else scope.fact(text)
    kind = "data" if depends_on_data else "form" if scope.depends_on_data(text) else "scalars"
    if fact is not None:  # Parts need no facts of their own.
        scope = dataclasses.replace(scope, texts={})

    def side(found: Conditions | None, relation: Literal["!=", "=="]) -> Conditions:
        if found is None or (fact is not None and any(isinstance(each, AnyOf) for each in found)):
            return (Condition(fact or symbol(f"__unknown_{kind}_{number}"), relation, Expression()),)
        return found

    if depends_on_data:
        return side(None, "!="), side(None, "==")
    return side(stated(text, scope), "!="), side(stated(text, scope, holds=False), "==")


def unknown_in(conditions: Iterable[Condition | AnyOf]) -> str:
    """Why it is not known whether conditions hold; empty if it is."""
    single = (each for each in conditions if isinstance(each, Condition))  # Cases are about known symbols.
    names = (name for each in single for name in sorted(each.left.symbols | each.right.symbols))
    return next((why for name in names for start, why in _UNKNOWN.items() if name.startswith(start)), "")


def stated(text: str, scope: Scope, *, holds: bool = True) -> Conditions | None:
    """The conditions under which a text in Python is true, or false; None if it is of another form."""
    tree = syntax_tree(text)
    found = None if tree is None else _cases(tree, scope, holds=holds)
    if found is None or len(found) > MOST_CASES:
        return None
    return found[0] if len(found) == 1 else (AnyOf(found),)


MOST_CASES = 16
"""The most cases that are told apart, because conditions of conditions have exponentially many."""


def loop(
    init: str, condition: str, update: str, variable: str, scope: Scope, dtype: str = SIGNED
) -> tuple[Expression, Expression, int, DType] | None:
    """
    The value of a loop's variable of this type in the first round, the last value that it may have, by what it changes
    in each round, and the type; None for other loops.
    """
    match syntax_tree(condition):
        case ast.Compare(left=ast.Name(id=name), ops=[order], comparators=[end_text]) if (
            name == variable and init.strip().startswith(f"{variable} =")
        ):
            given, end = scope.typed(init.partition("=")[2]), scope.typed(ast.unparse(end_text))
        case _:
            return None
    updated = parse(update.partition("=")[2])
    step = None if updated is None else difference(updated, symbol(variable))
    begin = given and given.stored(dtype)
    if begin is None or end is None or not step:
        return None
    common = common_type(begin.dtype, end.dtype)
    start, last = (converted(each, common) for each in (begin, end))
    if step < 0 and (dtype.startswith("u") or common in UNSIGNED):
        is_natural = end.is_natural or common in UNSIGNED
        least = last.constant if last.is_constant else 0 if is_natural else -1
        if least + isinstance(order, ast.Gt) + step < 0:
            return None  # Below 0, the variable wraps around, and the loop goes on.
    match order:
        case ast.Lt() if step > 0:
            return start, last - 1, step, begin.dtype
        case ast.LtE() if step > 0:
            return start, last, step, begin.dtype
        case ast.Gt() if step < 0:
            return start, last + 1, step, begin.dtype
        case ast.GtE() if step < 0:
            return start, last, step, begin.dtype
    return None


_Cases = tuple[tuple[Condition, ...], ...]
"""Of one of them all conditions hold."""


def _cases(tree: ast.expr, scope: Scope, *, holds: bool) -> _Cases | None:
    """The cases in which a condition holds, or does not; None if it is of another form."""
    match tree:
        case ast.Constant(value=bool() | int() as value):
            return ((),) if bool(value) == holds else ()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _cases(operand, scope, holds=not holds)
        case ast.BoolOp(op=op, values=values):
            return _joined((_cases(each, scope, holds=holds) for each in values), isinstance(op, ast.And) == holds)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if found := _relation(
            left, op, right, scope, holds=holds
        ):
            return found
        case ast.Name(id=name) if name in scope.choices:
            return _of_choice(scope.choices[name][0 if holds else 1])
    text = ast.unparse(tree)
    flag = scope.fact(text) if (number := scope.value(text)) is None else number
    return None if flag is None else ((Condition(flag, "!=" if holds else "==", Expression()),),)


def _of_choice(found: Conditions) -> _Cases | None:
    """The cases in which all of these conditions hold; None if they are not known."""
    if unknown_in(found):
        return None
    return _joined((each.cases if isinstance(each, AnyOf) else ((each,),) for each in found), are_all=True)


def _joined(parts: Iterable[_Cases | None], are_all: bool) -> _Cases | None:
    """The cases in which all parts hold, or one of them."""
    found: _Cases = ((),) if are_all else ()
    for part in parts:
        if part is None or len(found) > MOST_CASES:
            return None
        found = tuple((*a, *b) for a, b in itertools.product(found, part)) if are_all else (*found, *part)
    return found


def _relation(left: ast.expr, op: ast.cmpop, right: ast.expr, scope: Scope, *, holds: bool) -> _Cases | None:
    a, b = scope.typed(ast.unparse(left)), scope.typed(ast.unparse(right))
    relation = _RELATIONS.get(type(op))
    if a is None or b is None or relation is None:
        return None
    dtype = common_type(a.dtype, b.dtype)
    found = relation(converted(a, dtype), converted(b, dtype))
    return ((found if holds else _not(found),),)


_RELATIONS: Mapping[type[ast.cmpop], Callable[[Expression, Expression], Condition]] = {
    ast.Lt: lambda a, b: Condition(a, "<", b),
    ast.LtE: lambda a, b: Condition(a, "<", b + 1),
    ast.Gt: lambda a, b: Condition(b, "<", a),
    ast.GtE: lambda a, b: Condition(b, "<", a + 1),
    ast.Eq: lambda a, b: Condition(a, "==", b),
    ast.NotEq: lambda a, b: Condition(a, "!=", b),
}


def _not(condition: Condition) -> Condition:
    a, b = condition.left, condition.right
    match condition.relation:
        case "<":
            return Condition(b, "<", a + 1)
        case "==":
            return Condition(a, "!=", b)
        case _:
            return Condition(a, "==", b)
