"""Sizes as DaCe writes them: integer expressions over symbols, read and evaluated without sympy."""

from __future__ import annotations

import ast
import copy
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from gtstub.stub.signature.expressions import renamed, syntax_tree

LARGEST_VALUE = 2**62
"""A larger value, also one of a part of an expression, counts as unknown."""

LONGEST_TEXT = 16_384
MOST_NODES = 1024

Names = Mapping[str, ast.expr | None]
"""What stands for each symbol of a nested SDFG in the outermost one; None if it is not known there."""


def read(text: str) -> ast.expr | None:
    """The expression in a text, None if it is none."""
    return syntax_tree(text) if len(text) <= LONGEST_TEXT else None


def unknown(name: str) -> ast.expr:
    """What stands for a symbol without a value in the outermost SDFG. The '?' keeps its name apart from all symbols."""
    return ast.Name(name if name.endswith("?") else f"{name}?")


def translate(tree: ast.expr, names: Names, *, others_are_known: bool) -> ast.expr:
    """The expression with `names` in place of symbols. Other symbols stay if they are known, or get a '?'."""
    known = ast.Name if others_are_known else unknown
    return renamed(copy.deepcopy(tree), lambda name: names.get(name, known(name)) or unknown(name))


def is_short(tree: ast.expr) -> bool:
    """Whether an expression is of a size that people write; one that contains itself many times is not."""
    return next(itertools.islice(ast.walk(tree), MOST_NODES, None), None) is None


def times(factor: int, tree: ast.expr) -> ast.expr:
    """The product of a number and an expression."""
    match tree:
        case ast.Constant(value=int() as number):
            return ast.Constant(factor * number)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return ast.BinOp(times(factor, left), ast.Mult(), right)
    return tree if factor == 1 else ast.BinOp(ast.Constant(factor), ast.Mult(), tree)


# --- Evaluation -------------------------------------------------------------------------------------------------------

Number = int | Fraction
"""'/' is that of fractions in DaCe, as in 'floor(N/2)'."""


def evaluate(tree: ast.expr, sizes: Mapping[str, int]) -> int | None:
    """The value of an expression; None if a symbol has no value, or if it is no integer."""
    value = _evaluate(tree, sizes)
    return None if value is None or value.denominator != 1 else int(value)


def _evaluate(tree: ast.expr, sizes: Mapping[str, int]) -> Number | None:
    value: Number | None = None
    match tree:
        case ast.Constant(value=int() as number):
            value = int(number)
        case ast.Name(id=name):
            value = sizes.get(name)
        case ast.UnaryOp(op=op, operand=operand):
            value = _apply(_UNARY.get(type(op)), _evaluate(operand, sizes))
        case ast.BinOp(left=left, op=op, right=right):
            value = _apply(_BINARY.get(type(op)), _evaluate(left, sizes), _evaluate(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
            value = _apply(_FUNCTIONS.get(name), *(_evaluate(each, sizes) for each in args))
    return value if value is not None and -LARGEST_VALUE <= value <= LARGEST_VALUE else None


def _apply(function: Callable[..., Number | None] | None, *values: Number | None) -> Number | None:
    if function is None or None in values:
        return None
    try:
        return function(*values)
    except (ZeroDivisionError, TypeError):  # TypeError: a wrong number of arguments
        return None


def _power(base: Number, exponent: Number) -> Number | None:
    if exponent.denominator != 1 or not 0 <= exponent <= LARGEST_VALUE.bit_length():
        return None
    return Fraction(base) ** int(exponent)


_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Number]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Number | None]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: Fraction,
    ast.Pow: _power,
}

_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "Min": lambda *values: min(values),
    "min": lambda *values: min(values),
    "Max": lambda *values: max(values),
    "max": lambda *values: max(values),
    "Mod": operator.mod,
    "Abs": abs,
    "abs": abs,
    "floor": math.floor,
    "ceiling": math.ceil,
    "int_floor": operator.floordiv,
    "__int_floor": operator.floordiv,
    "int_ceil": lambda a, b: -(-a // b),
}
