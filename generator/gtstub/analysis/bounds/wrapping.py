"""
Integer expressions as C++ computes them. Numbers of unsigned types wrap around: with `n` of type uint32, `n - 2` is
above 4 * 10^9 if n is 1. The overflow of a signed number is undefined behaviour, so that these have no limits here.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence

from gtstub.signature.dtypes import DType
from gtstub.signature.expressions import Expression, extremum, wrapped

SIGNED: DType = "int64"
"""The type of an expression without unsigned symbols. C++ computes shorter types as int32."""

UNSIGNED: tuple[DType, ...] = ("uint32", "uint64")
"""The types that wrap around. Shorter ones become int32 before anything is computed."""

STORED: tuple[DType, ...] = ("int8", "int16", "uint8", "uint16", *UNSIGNED)
"""The types in which a number that is stored may change."""

_PROMOTED: DType = "int32"


@dataclasses.dataclass(frozen=True)
class Typed:
    """An expression, and its type in C++."""

    value: Expression
    dtype: DType

    def stored(self, dtype: object) -> Typed:
        """The value in a variable of a type, which may be none of integers."""
        found = next((each for each in (*STORED, _PROMOTED) if each == dtype), SIGNED)
        fits = found not in STORED or found == self.dtype or (found, self.dtype) == ("uint64", "uint32")
        return Typed(self.value if fits else wrapped(found, self.value), found)


def in_types(tree: ast.expr, symbols: Mapping[str, Expression], types: Mapping[str, DType]) -> Typed | None:
    """The value of an expression over known symbols, of which some have types of their own."""
    match tree:
        case ast.Constant(value=int() as number):
            return Typed(Expression(number), _PROMOTED if abs(number) < 2**31 else SIGNED)
        case ast.Name(id=name):
            return Typed(symbols[name], types.get(name, SIGNED))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _combined(ast.Sub(), [Typed(Expression(), _PROMOTED), in_types(operand, symbols, types)])
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            return _combined(op, [in_types(each, symbols, types) for each in (left, right)])
        case ast.Call(func=ast.Name(id=("Min" | "min" | "Max" | "max") as name), args=args):
            return _combined(name, [in_types(each, symbols, types) for each in args])
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(ast.Name("dace"), name), args=[operand]):
            found = in_types(operand, symbols, types)
            dtype = next((each for each in (*STORED, _PROMOTED, SIGNED) if each == name), None)
            if found is not None and dtype and (dtype in STORED or common_type(found.dtype, dtype) == dtype):
                return found.stored(dtype)
    return None


def common_type(a: DType, b: DType) -> DType:
    """The type in which C++ computes with two numbers."""
    if SIGNED in (a, b):
        return "uint64" if "uint64" in (a, b) else SIGNED
    return next((each for each in reversed(UNSIGNED) if each in (a, b)), _PROMOTED)


def converted(typed: Typed, dtype: DType) -> Expression:
    """A value in an unsigned type, unless it is sure to fit. What differs between rounds of a loop is left as it is."""
    value = typed.value
    return value if _fits(typed, dtype) or _varies(value) else wrapped(dtype, value)


def _fits(typed: Typed, dtype: DType) -> bool:
    """Whether a value is sure to be the same in the type of a sum or of a comparison."""
    value = typed.value
    return dtype not in UNSIGNED or typed.dtype.startswith("u") or (value.is_constant and value.constant >= 0)


def _varies(value: Expression) -> bool:
    return any("#" in name for name in value.symbols)


def _combined(op: ast.operator | str, parts: Sequence[Typed | None]) -> Typed | None:
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    dtype = known[0].dtype if len(known) == 1 else _PROMOTED
    for each in known:
        dtype = common_type(dtype, each.dtype)
    if isinstance(op, str):
        return Typed(
            extremum("min" if op.lower() == "min" else "max", (converted(each, dtype) for each in known)), dtype
        )
    value = _OPERATORS[type(op)](*(each.value for each in known))
    # Arithmetic modulo a power of two may be done once, at the end.
    fits = dtype not in UNSIGNED or (not isinstance(op, ast.Sub) and all(_fits(each, dtype) for each in known))
    return Typed(value if fits or _varies(value) else wrapped(dtype, value), dtype)


_OPERATORS: Mapping[type[ast.operator], Callable[[Expression, Expression], Expression]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
