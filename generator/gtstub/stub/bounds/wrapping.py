"""
Integer expressions as C++ computes them. Numbers of unsigned types wrap around: with `n` of type uint32, `n - 2` is
above 4 * 10^9 if n is 1. The overflow of a signed number is undefined behaviour, so that these have no limits here.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence

from gtstub.stub.signature.dtypes import DTYPES, DType
from gtstub.stub.signature.expressions import BITS, Expression, extremum, unwrapped, wrapped

SIGNED: DType = "int64"
"""The type of a name of which the type is not known."""

UNSIGNED: tuple[DType, ...] = ("uint32", "uint64")
"""The types that wrap around. Shorter ones become int32 before anything is computed."""

LONG: tuple[DType, ...] = ("int32", "int64")
"""The types in which nothing wraps around."""

_PROMOTED: DType = "int32"


@dataclasses.dataclass(frozen=True)
class Typed:
    """An expression, its type in C++, and whether it is sure not to be negative."""

    value: Expression
    dtype: DType
    is_natural: bool = False

    def stored(self, dtype: object) -> Typed | None:
        """The value in a variable of a type; None for one of other numbers."""
        if dtype == self.dtype:
            return self
        found = next((each for each in DTYPES if each == dtype), None)
        if found not in BITS:
            return None
        is_signed, are_signed = (each.startswith("i") for each in (found, self.dtype))
        # How many bits the values have without a sign, and the type has for them. Loops have less than 2**31 rounds.
        bits, held = BITS.get(self.dtype, 1) - are_signed, BITS[found] - is_signed
        fits = bits <= held and (self.is_natural or is_signed)
        if fits or (found in LONG and are_signed and _varies(self.value)):
            return Typed(self.value, found, self.is_natural)
        return Typed(wrapped(found, unwrapped(self.value, BITS[found])), found, not is_signed)


def in_types(tree: ast.expr, names: Callable[[str], Typed]) -> Typed | None:
    """The value of an expression over names with these values."""
    match tree:
        case ast.Constant(value=int() as number):
            dtype: DType = _PROMOTED if number < 2**31 else SIGNED if number < 2**63 else "uint64"
            return Typed(Expression(number), dtype, is_natural=True)
        case ast.Name(id=name):
            return names(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _combined(ast.Sub(), [Typed(Expression(), _PROMOTED), in_types(operand, names)])
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            return _combined(op, [in_types(each, names) for each in (left, right)])
        case ast.Call(func=ast.Name(id=("Min" | "min" | "Max" | "max") as name), args=[*firsts, last]):
            found = in_types(last, names)
            for each in reversed(firsts):
                found = _combined(name.lower(), [in_types(each, names), found])
            return found
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(ast.Name("dace"), name), args=[operand]):
            found = in_types(operand, names)
            return None if found is None else found.stored(name)
    return None


def common_type(a: DType, b: DType) -> DType:
    """The type in which C++ computes with two numbers."""
    if SIGNED in (a, b):
        return "uint64" if "uint64" in (a, b) else SIGNED
    return next((each for each in reversed(UNSIGNED) if each in (a, b)), _PROMOTED)


def converted(typed: Typed, dtype: DType) -> Expression:
    """A value in the type in which C++ computes."""
    fits = dtype not in UNSIGNED or typed.is_natural
    return typed.value if fits else wrapped(dtype, unwrapped(typed.value, BITS[dtype]))


def _varies(value: Expression) -> bool:
    """Whether a value differs between rounds of a loop."""
    return any("#" in name for name in value.symbols)


def _combined(op: ast.operator | str, parts: Sequence[Typed | None]) -> Typed | None:
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    dtype = common_type(*(each.dtype for each in known))
    are_natural = all(each.is_natural for each in known)
    if isinstance(op, str):
        value = extremum("min" if op == "min" else "max", (converted(each, dtype) for each in known))
        return Typed(value, dtype, dtype in UNSIGNED or are_natural)
    if dtype not in UNSIGNED:
        return Typed(
            _OPERATORS[type(op)](*(each.value for each in known)), dtype, are_natural and not isinstance(op, ast.Sub)
        )
    # Arithmetic modulo a power of two is done once, at the end.
    value = _OPERATORS[type(op)](*(unwrapped(each.value, BITS[dtype]) for each in known))
    return Typed(wrapped(dtype, value), dtype, is_natural=True)


_OPERATORS: Mapping[type[ast.operator], Callable[[Expression, Expression], Expression]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
