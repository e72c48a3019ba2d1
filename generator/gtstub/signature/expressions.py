"""
Integer expressions over the scalar arguments of an SDFG: sums of multiples of symbols, of minima and of maxima.

A signature contains them as text ('max(a, b) - 2*c + 1'). Equal sums have equal objects, so that terms cancel.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

LARGEST_FACTOR = 2**16
LARGEST_CONSTANT = 2**48
MOST_TERMS = 64
LONGEST_TEXT = 4096
LARGEST_SYMBOL = 2**43
LARGEST_VALUE = 2**60
"""
Within these limits an expression cannot overflow if it is evaluated in int64. A symbol of 64 bits that exceeds its
limit is taken for the limit, because no array has so many elements. The last limit is for the factors of minima and
maxima, which multiply each other.
"""


@dataclasses.dataclass(frozen=True)
class Extremum:
    """The least or the greatest of at least two expressions."""

    which: Literal["min", "max"]
    of: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.which}({', '.join(map(str, self.of))})"


Atom = str | Extremum
"""What a term multiplies; a text is the name of a symbol."""


@dataclasses.dataclass(frozen=True)
class Expression:
    """The sum of `constant` and of each atom times its factor, in the order of the atoms' texts."""

    constant: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()

    def __add__(self, other: Expression | int) -> Expression:
        if isinstance(other, int):
            return dataclasses.replace(self, constant=self.constant + other)
        return _sum(self.constant + other.constant, (*self.terms, *other.terms))

    def __sub__(self, other: Expression | int) -> Expression:
        return self + other * -1

    def __mul__(self, factor: int) -> Expression:
        return Expression(self.constant * factor, tuple((atom, times * factor) for atom, times in self.terms if factor))

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols."""
        inner = (
            {atom} if isinstance(atom, str) else frozenset().union(*(each.symbols for each in atom.of))
            for atom, _ in self.terms
        )
        return frozenset().union(*inner)

    def replace(self, values: Mapping[str, Expression]) -> Expression:
        """The expression with `values` in place of symbols."""
        constant = self.constant
        terms: list[tuple[Atom, int]] = []
        for atom, factor in self.terms:
            if isinstance(atom, str):
                part = values.get(atom)
            else:
                part = extremum(atom.which, [each.replace(values) for each in atom.of])
            if part is None:
                terms.append((atom, factor))
            else:
                constant += part.constant * factor
                terms += [(inner, times * factor) for inner, times in part.terms]
        return _sum(constant, terms)

    def __str__(self) -> str:
        return self.written(str, str, "*")

    def written(self, atom: Callable[[Atom], str], number: Callable[[int], str], times: str) -> str:
        """The text in a language that writes atoms, numbers and the sign for 'times' in this way."""
        text = ""
        for each, factor in self.terms:
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += f"{sign}{'' if abs(factor) == 1 else f'{abs(factor)}{times}'}{atom(each)}"
        if not text:
            return number(self.constant)
        return text + (f" {'-' if self.constant < 0 else '+'} {number(abs(self.constant))}" if self.constant else "")


def symbol(name: str) -> Expression:
    """The expression that is one symbol."""
    return Expression(0, ((name, 1),))


def _sum(constant: int, terms: Sequence[tuple[Atom, int]]) -> Expression:
    if len(terms) < 2:
        return Expression(constant, tuple(terms))
    factors: dict[Atom, int] = {}
    for atom, factor in terms:
        factors[atom] = factors.get(atom, 0) + factor
    kept = sorted(((atom, factor) for atom, factor in factors.items() if factor), key=lambda term: str(term[0]))
    return Expression(constant, tuple(kept))


def extremum(which: Literal["min", "max"], values: Iterable[Expression]) -> Expression:
    """The least or the greatest of several expressions, of which those that never count are left out."""
    by_terms: dict[tuple[tuple[Atom, int], ...], int] = {}
    choose: Callable[[int, int], int] = min if which == "min" else max
    for value in values:
        flat = [value]
        match value.terms:
            case ((Extremum(of=inner) as atom, 1),) if atom.which == which:  # max(max(a, b) + 1, c)
                flat = [each + value.constant for each in inner]
        for each in flat:
            by_terms[each.terms] = choose(by_terms.get(each.terms, each.constant), each.constant)
    flat = [Expression(constant, terms) for terms, constant in by_terms.items()]
    left = sorted((each for each in flat if not _never_counts(each, flat, which)), key=str)
    return left[0] if len(left) == 1 else Expression(0, ((Extremum(which, tuple(left)), 1),))


def _never_counts(value: Expression, others: Iterable[Expression], which: Literal["min", "max"]) -> bool:
    """Whether a value is a maximum of which one part is never below another value of a minimum; or the reverse."""
    match value.terms:
        case ((Extremum(of=inner) as atom, 1),) if atom.which != which:
            sign = 1 if which == "min" else -1
            found = (difference(part + value.constant, each) for part in inner for each in others if each is not value)
            return any(each is not None and each * sign >= 0 for each in found)
    return False


def difference(a: Expression, b: Expression) -> int | None:
    """The value of a - b if it is the same for all values of the symbols."""
    found = a - b
    return found.constant if found.is_constant else None


# --- Text -------------------------------------------------------------------------------------------------------------


def parse(text: str) -> Expression | None:
    """Reads an expression as Python and DaCe write it; None if it is of another form or beyond the limits."""
    tree = syntax_tree(text) if len(text) <= LONGEST_TEXT else None
    try:
        found = None if tree is None else _read(tree)
    except RecursionError:
        return None
    return found if found is not None and _is_small(found) else None


_SYMBOL = re.compile(r"\bsymbol\((\w+)(?:,[^()]*)?\)")
"""DaCe's text for a symbol that is not of its default type: 'symbol(x, dtype=dace.float64, real=True)'."""


def syntax_tree(text: str) -> ast.expr | None:
    """A text of Python or of DaCe as a syntax tree, in which symbols are names. None if it is no expression."""
    try:
        return ast.parse(_SYMBOL.sub(r"\1", text.replace("$", "").strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read(node: ast.expr) -> Expression | None:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return Expression(number) if abs(number) <= LARGEST_CONSTANT else None
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return None if (value := _read(operand)) is None else value * -1
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _read(left), _read(right)
            return None if a is None or b is None else _combine(a, op, b)
        case ast.Call(func=ast.Name(id=("Min" | "min" | "Max" | "max") as name), args=[_, *_] as args, keywords=[]):
            values = [value for each in args if (value := _read(each)) is not None]
            return extremum("min" if name.lower() == "min" else "max", values) if len(values) == len(args) else None
    return None


def _combine(a: Expression, op: ast.operator, b: Expression) -> Expression | None:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult() if b.is_constant and abs(b.constant) <= LARGEST_FACTOR:
            return a * b.constant
        case ast.Mult() if a.is_constant and abs(a.constant) <= LARGEST_FACTOR:
            return b * a.constant
    return None


def _all(value: Expression) -> Iterator[Expression]:
    yield value
    for atom, _ in value.terms:
        if isinstance(atom, Extremum):
            yield from itertools.chain.from_iterable(map(_all, atom.of))


def _is_small(value: Expression) -> bool:
    every = list(_all(value))
    return (
        sum(1 + len(each.terms) for each in every) <= MOST_TERMS
        and all(
            abs(each.constant) <= LARGEST_CONSTANT and all(abs(factor) <= LARGEST_FACTOR for _, factor in each.terms)
            for each in every
        )
        and _magnitude(value) <= LARGEST_VALUE
    )


def _magnitude(value: Expression) -> int:
    """What no value of an expression exceeds, whatever the values of its symbols are."""
    atoms = (
        (LARGEST_SYMBOL if isinstance(atom, str) else max(map(_magnitude, atom.of)), factor)
        for atom, factor in value.terms
    )
    return abs(value.constant) + sum(abs(factor) * atom for atom, factor in atoms)
