"""The indices of an access as sums of symbols, and which accesses never meet."""

from __future__ import annotations

import ast
import functools
from collections.abc import Set
from typing import NamedTuple

from gtstub.stub.sdfg.model import Subset, words_in
from gtstub.stub.signature.expressions import Expression, difference, parse, symbol, syntax_tree


class Axis(NamedTuple):
    """The indices on an axis, `end` included. A point has no step."""

    start: Expression
    end: Expression
    step: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset(words_in(str(self.start), str(self.end), self.step))

    def is_below(self, other: Axis) -> bool:
        """Whether all its indices are less than those of another axis, whatever the values of the symbols are."""
        last = self.start if self.step.startswith("-") else self.end
        gap = difference(other.end if other.step.startswith("-") else other.start, last)
        return gap is not None and gap > 0


Indices = tuple[Axis, ...] | None
"""Those on each axis; None if they are left out, or of a kind that is not read: these equal nothing."""


@functools.lru_cache(maxsize=4096)
def indices_of(subset: Subset | None) -> Indices:
    if subset is None or subset.unread:
        return None
    ends = ((_sum(each.start), _sum(each.end), each.step) for each in subset.ranges)
    return tuple(Axis(start, end, "" if start == end else step) for start, end, step in ends)


@functools.lru_cache(maxsize=4096)
def _sum(text: str) -> Expression:
    """An index. What cannot be read, as a whole or as a part of a sum, is one opaque symbol."""
    if (found := parse(text)) is not None:
        return found
    match syntax_tree(text):
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(ast.unparse(left)) + _sum(ast.unparse(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum(ast.unparse(left)) - _sum(ast.unparse(right))
    return symbol(text)


def are_point(indices: Indices) -> bool:
    return indices is not None and not any(each.step for each in indices)


def are_apart(one: Indices, other: Indices, variables: Set[str]) -> bool:
    """Whether two accesses have no element in common, in any two iterations over these variables."""
    if one is None or other is None or len(one) != len(other):
        return False
    return any(
        variables.isdisjoint(a.names | b.names) and (a.is_below(b) or b.is_below(a))
        for a, b in zip(one, other, strict=True)
    )
