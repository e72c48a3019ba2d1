"""Conditions on scalar arguments, as DaCe's interstate edges, branches and loops write them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gtstub.analysis.bounds.access import DATA_CONDITION, SCALAR_CONDITION, Conditions, Scope
from gtstub.signature.expressions import Expression, symbol, syntax_tree
from gtstub.signature.model import Condition

_UNKNOWN = {"__unknown_data_": DATA_CONDITION, "__unknown_scalars_": SCALAR_CONDITION}
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
    depends_on_data = scope.depends_on_data(text)
    if depends_on_data and scope.evaluates_both:
        return (), ()
    holds = None if depends_on_data else read(text, scope)
    fails = none_of(holds)
    fact = None if depends_on_data else scope.fact(text)
    if fact is None:
        fact = symbol(f"{'__unknown_data_' if depends_on_data else '__unknown_scalars_'}{number}")
    return (
        (Condition(fact, "!=", Expression()),) if holds is None else holds,
        (Condition(fact, "==", Expression()),) if fails is None else fails,
    )


def unknown_in(conditions: Conditions) -> str:
    """Why it is not known whether conditions hold; empty if it is."""
    names = (name for each in conditions for name in sorted(each.left.symbols | each.right.symbols))
    return next((why for name in names for start, why in _UNKNOWN.items() if name.startswith(start)), "")


def read(text: str, scope: Scope) -> Conditions | None:
    """The conditions that a text in Python states; None if it is of another form."""
    tree = syntax_tree(text)
    return None if tree is None else _conditions(tree, scope)


def loop(init: str, condition: str, update: str, variable: str, scope: Scope) -> tuple[Expression, Expression] | None:
    """The least and the greatest value of a loop's variable, which changes by 1; None for other loops."""
    match syntax_tree(condition), syntax_tree(update.partition("=")[2]):
        case (
            ast.Compare(left=ast.Name(id=held), ops=[order], comparators=[end]),
            ast.BinOp(left=ast.Name(id=stepped), op=step, right=ast.Constant(value=1)),
        ) if held == stepped == variable and init.strip().startswith(f"{variable} ="):
            start, last = scope.value(init.partition("=")[2]), scope.value(ast.unparse(end))
        case _:
            return None
    if start is None or last is None:
        return None
    match order, step:
        case ast.Lt(), ast.Add():
            return start, last - 1
        case ast.LtE(), ast.Add():
            return start, last
        case ast.Gt(), ast.Sub():
            return last + 1, start
        case ast.GtE(), ast.Sub():
            return last, start
    return None


def _conditions(tree: ast.expr, scope: Scope) -> Conditions | None:
    match tree:
        case ast.Constant(value=True | 1):
            return ()
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_conditions(each, scope) for each in values]
            return None if None in parts else tuple(each for part in parts for each in part or ())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return none_of(_conditions(operand, scope))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            a, b = scope.value(ast.unparse(left)), scope.value(ast.unparse(right))
            relation = _RELATIONS.get(type(op))
            return None if a is None or b is None or relation is None else (relation(a, b),)
    flag = scope.value(ast.unparse(tree))
    return None if flag is None else (Condition(flag, "!=", Expression()),)


_RELATIONS: Mapping[type[ast.cmpop], Callable[[Expression, Expression], Condition]] = {
    ast.Lt: lambda a, b: Condition(a, "<", b),
    ast.LtE: lambda a, b: Condition(a, "<", b + 1),
    ast.Gt: lambda a, b: Condition(b, "<", a),
    ast.GtE: lambda a, b: Condition(b, "<", a + 1),
    ast.Eq: lambda a, b: Condition(a, "==", b),
    ast.NotEq: lambda a, b: Condition(a, "!=", b),
}


def none_of(found: Conditions | None) -> Conditions | None:
    """The opposite of one condition; not known for several, of which one may be false."""
    return (_not(found[0]),) if found is not None and len(found) == 1 else None


def _not(condition: Condition) -> Condition:
    a, b = condition.left, condition.right
    match condition.relation:
        case "<":
            return Condition(b, "<", a + 1)
        case "==":
            return Condition(a, "!=", b)
        case _:
            return Condition(a, "==", b)
