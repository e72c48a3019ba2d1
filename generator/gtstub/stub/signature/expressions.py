"""
Integer expressions over symbols: sums of multiples of atoms and of their products.

A signature contains them as text. Those over the scalar arguments of an SDFG are computed by calls, and have no powers,
and no quotients but by a number: 'max(a, b) - 2*int_floor(c*d, 2) + 1'. A part in a type of C++ wraps around in it:
'uint32(n - 2)'. The sizes and strides
of the arrays of DaCe programs are polynomials of symbols, powers and rounded quotients:
'M*N + R**K + int_floor(N, 2)'. Equal sums have equal objects, so that terms cancel.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

LARGEST_FACTOR = 2**16
LARGEST_CONSTANT = 2**48
MOST_TERMS = 64
LONGEST_TEXT = 4096
LARGEST_SYMBOL = 2**43
LARGEST_VALUE = 2**60
LARGEST_IN_PRODUCT = 2**40
LARGEST_WITH_PRODUCTS = 2**126
"""
Within these limits an expression without products cannot overflow if it is evaluated in int64, as long as no symbol
exceeds its limit. One with a product, or with a symbol of 64 bits, is evaluated in 128 bits; symbols in products have a
limit of their own. LARGEST_VALUE is for the factors of minima and maxima, which multiply each other.
"""

LARGEST_COEFFICIENT = 2**62
LARGEST_DEGREE = 16
LARGEST_POWER = 2**63 - 1
"""The limits of polynomials, which C evaluates in unsigned numbers."""


@dataclasses.dataclass(frozen=True)
class Extremum:
    """The least or the greatest of at least two expressions."""

    which: Literal["min", "max"]
    of: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.which}({', '.join(map(str, self.of))})"

    def evaluate(self, values: Mapping[str, int]) -> int:
        return _CHOICES[self.which](each.evaluate(values) for each in self.of)


@dataclasses.dataclass(frozen=True)
class Operation:
    """
    A power whose exponent is not constant, or a quotient, computed as DaCe's functions of C++ do, which round towards
    zero. A power with a negative exponent and a quotient by zero, which DaCe leaves undefined, are 0. A power that
    int64 does not hold is its greatest value, which no array has.
    """

    which: Literal["power", "int_floor", "int_ceil"]
    left: Expression
    right: Expression

    def __str__(self) -> str:
        if self.which != "power":
            return f"{self.which}({self.left}, {self.right})"
        return "**".join(str(each) if _is_simple(each) else f"({each})" for each in (self.left, self.right))

    @property
    def divisor(self) -> int:
        """The number above 0 that is the divisor of a quotient; 0 for another operation."""
        return max(0, self.right.constant) if self.which != "power" and self.right.is_constant else 0

    @property
    def numerator(self) -> Expression:
        """What a quotient rounds towards 0 after the division."""
        return self.left + self.right - 1 if self.which == "int_ceil" else self.left

    def evaluate(self, values: Mapping[str, int]) -> int:
        left, right = self.left.evaluate(values), self.right.evaluate(values)
        if self.which == "power":
            power = 0 if right < 0 else left**right if right < 64 or abs(left) < 2 else LARGEST_POWER
            return power if abs(power) < LARGEST_POWER else LARGEST_POWER
        if right == 0:
            return 0
        numerator = left if self.which == "int_floor" else left + right - 1
        quotient = abs(numerator) // abs(right)
        return quotient if (numerator < 0) == (right < 0) else -quotient


def _is_simple(value: Expression) -> bool:
    """Whether the text of an expression needs no brackets: a symbol or a natural number."""
    return (value.is_constant and value.constant >= 0) or (value.linear is not None and value.linear[1:] == (1, 0))


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """The value of an expression in an integer type of C++, in which it wraps around."""

    dtype: str
    of: Expression

    def __str__(self) -> str:
        return f"{self.dtype}({self.of})"

    def evaluate(self, values: Mapping[str, int]) -> int:
        bits = BITS[self.dtype]
        least = 0 if self.dtype.startswith("u") else -(1 << bits - 1)
        return (self.of.evaluate(values) - least) % (1 << bits) + least


BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""The types that values can wrap around in."""

Atom = str | Extremum | Operation | Wrapped
"""A text is the name of a symbol."""


@dataclasses.dataclass(frozen=True)
class Product:
    """The product of at least two atoms, in the order of their texts. An atom that occurs twice is squared."""

    of: tuple[Atom, ...]

    def __str__(self) -> str:
        return "*".join(map(str, self.of))


Term = Atom | Product


def _factors(term: Term) -> tuple[Atom, ...]:
    return term.of if isinstance(term, Product) else (term,)


@dataclasses.dataclass(frozen=True)
class Expression:
    """The sum of `constant` and of each term times its coefficient, in the order of the terms' texts."""

    constant: int = 0
    terms: tuple[tuple[Term, int], ...] = ()

    def __add__(self, other: Expression | int) -> Expression:
        if isinstance(other, int):
            return Expression(self.constant + other, self.terms)
        return _sum(self.constant + other.constant, (*self.terms, *other.terms))

    def __sub__(self, other: Expression | int) -> Expression:
        return self + other * -1

    def __mul__(self, other: Expression | int) -> Expression:
        if isinstance(other, Expression) and other.terms:
            products = tuple((_product(a, b), times * factor) for a, times in self.terms for b, factor in other.terms)
            return _sum(0, products) + self * other.constant + Expression(0, other.terms) * self.constant
        factor = other if isinstance(other, int) else other.constant
        return Expression(self.constant * factor, tuple((term, times * factor) for term, times in self.terms if factor))

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def linear(self) -> tuple[str, int, int] | None:
        """The symbol, its factor and the constant of 'factor*symbol + constant'; None for other expressions."""
        match self.terms:
            case ((str(name), factor),):
                return name, factor, self.constant
        return None

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols."""
        return frozenset(atom for atom in self.atoms() if isinstance(atom, str))

    @property
    def in_products(self) -> frozenset[str]:
        """The names of all symbols in products."""
        products = (term.of for term, _ in self.terms if isinstance(term, Product))
        found = frozenset[str]().union(*(Expression(0, ((each, 1),)).symbols for of in products for each in of))
        return found.union(
            *(each.in_products for term, _ in self.terms for atom in _factors(term) for each in _inner(atom))
        )

    def atoms(self) -> Iterator[Atom]:
        """All atoms, also those in others."""
        for term, _ in self.terms:
            for atom in _factors(term):
                yield atom
                for each in _inner(atom):
                    yield from each.atoms()

    @property
    def wraps(self) -> bool:
        """Whether a part of it is converted to a type in which it may wrap around."""
        return any(isinstance(atom, Wrapped) for atom in self.atoms())

    def replace(self, values: Mapping[str, Expression]) -> Expression:
        """The expression with `values` in place of symbols."""
        constant = self.constant
        terms: list[tuple[Term, int]] = []
        for term, factor in self.terms:
            if isinstance(term, str):
                part = values.get(term)
            elif isinstance(term, Extremum):
                part = extremum(term.which, [each.replace(values) for each in term.of])
            elif isinstance(term, Operation):
                left, right = term.left.replace(values), term.right.replace(values)
                made = Operation(term.which, left, right)
                part = Expression(0, ((made, 1),)) if not made.divisor else quotient(made.numerator, made.divisor)
            elif isinstance(term, Wrapped):
                part = wrapped(term.dtype, term.of.replace(values))
            else:
                part = functools.reduce(operator.mul, (Expression(0, ((each, 1),)).replace(values) for each in term.of))
            if part is None:
                terms.append((term, factor))
            else:
                constant += part.constant * factor
                terms += [(inner, times * factor) for inner, times in part.terms]
        return _sum(constant, terms)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value for these `values` of all symbols."""
        found = self.constant
        for term, factor in self.terms:
            product = factor
            for atom in _factors(term):
                product *= values[atom] if isinstance(atom, str) else atom.evaluate(values)
            found += product
        return found

    def __str__(self) -> str:
        return self.written(str, str, "*")

    def written(self, atom: Callable[[Atom], str], number: Callable[[int], str], times: str) -> str:
        """The text in a language that writes atoms, numbers and the sign for 'times' in this way."""
        text = ""
        for term, factor in self.terms:
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            coefficient = [] if abs(factor) == 1 else [str(abs(factor))]
            text += sign + times.join([*coefficient, *map(atom, _factors(term))])
        if not text:
            return number(self.constant)
        return text + (f" {'-' if self.constant < 0 else '+'} {number(abs(self.constant))}" if self.constant else "")


def symbol(name: str) -> Expression:
    """The expression that is one symbol."""
    return Expression(0, ((name, 1),))


def _inner(atom: Atom) -> tuple[Expression, ...]:
    """The expressions in an atom."""
    match atom:
        case Extremum(of=inner):
            return inner
        case Operation(left=left, right=right):
            return left, right
        case Wrapped(of=value):
            return (value,)
    return ()


def quotient(value: Expression, divisor: int) -> Expression:
    """A value divided by a number above 0, rounded towards 0."""
    parts = (value.constant, *(factor for _, factor in value.terms))
    if value.is_constant or all(each % divisor == 0 for each in parts):
        made = Operation("int_floor", Expression(value.constant), Expression(divisor)).evaluate({})
        return Expression(made, tuple((term, factor // divisor) for term, factor in value.terms))
    return _operation("int_floor", value, Expression(divisor))


def _operation(which: Literal["power", "int_floor", "int_ceil"], left: Expression, right: Expression) -> Expression:
    return Expression(0, ((Operation(which, left, right), 1),))


def _sum(constant: int, terms: Sequence[tuple[Term, int]]) -> Expression:
    if len(terms) < 2:
        return Expression(constant, tuple(terms))
    factors: dict[Term, int] = {}
    for term, factor in terms:
        factors[term] = factors.get(term, 0) + factor
    kept = sorted(((term, factor) for term, factor in factors.items() if factor), key=lambda each: str(each[0]))
    return Expression(constant, tuple(kept))


def _product(a: Term, b: Term) -> Product:
    return Product(tuple(sorted((*_factors(a), *_factors(b)), key=str)))


_CHOICES: Mapping[str, Callable[[Iterable[int]], int]] = {"min": min, "max": max}


def extremum(which: Literal["min", "max"], values: Iterable[Expression]) -> Expression:
    """The least or the greatest of several expressions, of which those that never count are left out."""
    by_terms: dict[tuple[tuple[Term, int], ...], int] = {}
    for value in values:
        flat = [value]
        match value.terms:
            case ((Extremum(of=inner) as atom, 1),) if atom.which == which:  # max(max(a, b) + 1, c)
                flat = [each + value.constant for each in inner]
        for each in flat:
            by_terms[each.terms] = _CHOICES[which]((by_terms.get(each.terms, each.constant), each.constant))
    flat = [Expression(constant, terms) for terms, constant in by_terms.items()]
    left = sorted((each for each in flat if not _never_counts(each, flat, which)), key=str)
    return left[0] if len(left) == 1 else Expression(0, ((Extremum(which, tuple(left)), 1),))


def wrapped(dtype: str, value: Expression) -> Expression:
    """A value in an integer type of C++."""
    atom = Wrapped(dtype, value)
    return Expression(atom.evaluate({})) if value.is_constant else Expression(0, ((atom, 1),))


def unwrapped(value: Expression, bits: int = 0) -> Expression:
    """A value as if its unsigned parts of so many bits or more did not wrap around: negative where they would."""
    for term, factor in value.terms:
        if isinstance(term, Wrapped) and term.dtype.startswith("u") and BITS[term.dtype] >= bits:
            value += (unwrapped(term.of, bits) - Expression(0, ((term, 1),))) * factor
    return value


def _never_counts(value: Expression, others: Iterable[Expression], which: Literal["min", "max"]) -> bool:
    """Whether a value is a maximum of which one part is never below another value of a minimum; or the reverse."""
    match value.terms:
        case ((Extremum(of=inner) as atom, 1),) if atom.which != which:
            sign = 1 if which == "min" else -1
            found = (difference(part + value.constant, each) for part in inner for each in others if each is not value)
            return any(each is not None and each * sign >= 0 for each in found)
    return False


@dataclasses.dataclass(frozen=True)
class Split:
    """`factor` times a symbol, plus `rest`; neither contains the symbol."""

    factor: Expression
    rest: Expression


def split(value: Expression, name: str) -> Split | None:
    """The factor and the rest of a symbol in an expression; None if it has no factor, or another form."""
    factor, rest = Expression(), Expression(value.constant)
    for term, times in value.terms:
        one = Expression(0, ((term, times),))
        others = [atom for atom in _factors(term) if atom != name]
        inner = frozenset[str]().union(*(Expression(0, ((atom, 1),)).symbols for atom in others))
        match len(_factors(term)) - len(others):
            case 0 if name not in inner:
                rest += one
            case 1 if name not in inner:
                factor += functools.reduce(
                    operator.mul, (Expression(0, ((each, 1),)) for each in others), Expression(times)
                )
            case _:
                return None
    return None if factor == Expression() else Split(factor, rest)


def difference(a: Expression, b: Expression) -> int | None:
    """The value of a - b if it is the same for all values of the symbols."""
    found = a - b
    return found.constant if found.is_constant else None


# --- Text -------------------------------------------------------------------------------------------------------------


def parse(text: str) -> Expression | None:
    """
    Reads an expression that a call computes, as Python and DaCe write it. None if it is of another form or beyond the
    limits.
    """
    return _read_if(_is_computed, text)


def polynomial(text: str) -> Expression | None:
    """
    Reads a polynomial of symbols, powers and quotients, as Python and DaCe write it. None if it is of another form or
    beyond the limits.
    """
    return _read_if(is_polynomial, text)


def _read_if(fits: Callable[[Expression], bool], text: str) -> Expression | None:
    tree = syntax_tree(text) if len(text) <= LONGEST_TEXT else None
    try:
        found = None if tree is None else _read(tree)
    except RecursionError:
        return None
    return found if found is not None and fits(found) else None


_SYMBOL = re.compile(r"\bsymbol\((\w+)(?:,[^()]*)?\)")
"""DaCe's text for a symbol that is not of its default type: 'symbol(x, dtype=dace.float64, real=True)'."""

_TYPED = re.compile(r"(?<![\w.])(\d+)i(?:8|16|32|64)\b|^(\d+)u(?:8|16|32|64)$")
"""DaCe's text for an integer of numpy: '10i32'. An unsigned one in a larger expression may wrap around in C++."""


def syntax_tree(text: str) -> ast.expr | None:
    """A text of Python or of DaCe as a syntax tree, in which symbols are names. None if it is no expression."""
    try:
        return ast.parse(_TYPED.sub(r"\1\2", _SYMBOL.sub(r"\1", text.strip())), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_in(tree: ast.expr) -> frozenset[str]:
    """The names in a syntax tree, without those of functions."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)


def renamed(tree: ast.expr, new: Callable[[str], ast.expr]) -> ast.expr:
    """A syntax tree with what is `new` in place of names. Changes the tree."""
    return _Renaming(new).visit(tree)  # type: ignore[no-any-return]


class _Renaming(ast.NodeTransformer):
    def __init__(self, new: Callable[[str], ast.expr]) -> None:
        self._new = new

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._new(node.id)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(each) for each in node.args], [])


def _read(node: ast.expr) -> Expression | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return Expression(number)
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return None if (value := _read(operand)) is None else value * -1
        case ast.BinOp(left=left, op=op, right=right):
            return _combine(_read(left), op, _read(right))
        case ast.Call(func=ast.Name(id=("Min" | "min" | "Max" | "max") as name), args=[_, *_] as args, keywords=[]):
            values = [value for each in args if (value := _read(each)) is not None]
            return extremum("min" if name.lower() == "min" else "max", values) if len(values) == len(args) else None
        case ast.Call(func=ast.Name(id="ipow"), args=[left, right], keywords=[]):
            return _combine(_read(left), ast.Pow(), _read(right))
        case ast.Call(func=ast.Name(id="int_floor" | "int_ceil" as which), args=[left, right], keywords=[]):
            return _rounded(which, _read(left), _read(right))
        case ast.Call(func=ast.Name(id="__int_floor"), args=[left, right], keywords=[]):  # DaCe's name for `//`
            return _rounded("int_floor", _read(left), _read(right))
        case ast.Call(func=ast.Name(id="floor" | "ceiling" as name), args=[inner], keywords=[]):
            return _rounded("int_floor" if name == "floor" else "int_ceil", *_fraction(inner))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(ast.Name("dace"), name), args=[arg], keywords=[]):
            value = _read(arg) if name in BITS else None
            return value if value is None else wrapped(name, value)
    return None


def _rounded(
    which: Literal["int_floor", "int_ceil"], numerator: Expression | None, divisor: Expression | None
) -> Expression | None:
    if numerator is None or divisor is None:
        return None
    if not (divisor.is_constant or (is_polynomial(numerator) and is_polynomial(divisor))):
        return None
    return numerator if divisor == Expression(1) else _operation(which, numerator, divisor)


def _fraction(node: ast.expr) -> tuple[Expression | None, Expression | None]:
    """A sum of products of quotients, as numerator and divisor: '1/2*N + 1/2' is N + 1 and 2."""
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            (a, under_a), (b, under_b) = _fraction(left), _fraction(right)
            return _combine(a, ast.Mult(), under_b), _combine(under_a, ast.Mult(), b)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            (a, under_a), (b, under_b) = _fraction(left), _fraction(right)
            return _combine(a, ast.Mult(), b), _combine(under_a, ast.Mult(), under_b)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            (a, under_a), (b, under_b) = _fraction(left), _fraction(right)
            if under_a != under_b:
                a, b = _combine(a, ast.Mult(), under_b), _combine(b, ast.Mult(), under_a)
                under_a = _combine(under_a, ast.Mult(), under_b)
            return _combine(a, op, b), under_a
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            a, under_a = _fraction(operand)
            return None if a is None else a * -1, under_a
    return _read(node), Expression(1)


def _combine(a: Expression | None, op: ast.operator, b: Expression | None) -> Expression | None:
    if a is None or b is None:
        return None
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            a, b = (b, a) if a.is_constant else (a, b)
            # Products grow fast, so that factors have limits, too.
            return a * b if is_polynomial(b) and (b.is_constant or is_polynomial(a)) else None
        case ast.Pow() if b.is_constant and 1 <= b.constant <= LARGEST_DEGREE:
            return a if b.constant == 1 else _combine(_combine(a, op, b - 1), ast.Mult(), a)
        case ast.Pow() if not b.is_constant and is_polynomial(a) and is_polynomial(b):
            return _operation("power", a, b)
        case ast.FloorDiv():
            return _rounded("int_floor", a, b)
    return None


def is_polynomial(value: Expression) -> bool:
    """Whether an expression is within the limits of polynomials."""
    return (
        sum(1 + len(each.terms) for atom in value.atoms() for each in _inner(atom)) + len(value.terms) <= MOST_TERMS
        and max(abs(value.constant), *(abs(factor) for _, factor in value.terms), 0) <= LARGEST_COEFFICIENT
        and max((len(_factors(term)) for term, _ in value.terms), default=0) <= LARGEST_DEGREE
        and not any(isinstance(atom, Extremum | Wrapped) for atom in value.atoms())
    )


def _is_computed(value: Expression) -> bool:
    atoms = tuple(value.atoms())
    every = [value, *(each for atom in atoms for each in _inner(atom))]
    products = [term for each in every for term, _ in each.terms if isinstance(term, Product)]
    return (
        all(atom.divisor > 0 for atom in atoms if isinstance(atom, Operation))
        and not any(Expression(0, ((product, 1),)).wraps for product in products)
        and sum(1 + len(each.terms) for each in every) <= MOST_TERMS
        and all(
            abs(each.constant) <= LARGEST_CONSTANT and all(abs(factor) <= LARGEST_FACTOR for _, factor in each.terms)
            for each in every
        )
        and _magnitude(value) <= (LARGEST_WITH_PRODUCTS if products else LARGEST_VALUE)
    )


def _magnitude(value: Expression) -> int:
    """What no value of an expression exceeds, whatever the values of its symbols are."""

    def of_atom(atom: Atom, largest: int) -> int:
        if isinstance(atom, Wrapped):
            return max(LARGEST_SYMBOL, _magnitude(atom.of))
        return max(map(_magnitude, _inner(atom)), default=largest)

    def of_term(term: Term) -> int:
        if isinstance(term, Product):
            return math.prod(of_atom(each, LARGEST_IN_PRODUCT) for each in term.of)
        return of_atom(term, LARGEST_SYMBOL)

    return abs(value.constant) + sum(abs(factor) * of_term(term) for term, factor in value.terms)
