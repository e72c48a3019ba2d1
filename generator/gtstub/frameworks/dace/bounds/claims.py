"""Summarises the accesses of an SDFG as the elements that each call is sure to access."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Literal

from gtstub.frameworks.dace.bounds.access import OTHER, Access, Json, Lookup, Range, Unread, arrays_of
from gtstub.frameworks.dace.bounds.simplify import canonical, simplified
from gtstub.signature.expressions import Atom, Expression, parse
from gtstub.signature.model import Bounds, Claim, Condition, Follow, Unknown, Use

MOST_COLUMNS = 64
"""A stub has the columns of a table as the bits of a word."""


def bounds_of(found: Iterable[Access | Unread], sdfg: Json) -> Bounds:
    """Summarises the accesses that are `found` in an SDFG. An SDFG of unknown form has no claims."""
    try:
        return _bounds_of(found, sdfg)
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError, MemoryError):
        names = sorted(name for name, each in arrays_of(sdfg).items() if not each["attributes"].get("transient"))
        return Bounds(0, (), tuple(Unknown(name, OTHER, 1) for name in names))


def _bounds_of(found: Iterable[Access | Unread], sdfg: Json) -> Bounds:
    known = 0
    unknown: collections.Counter[tuple[str, str]] = collections.Counter()
    claims: dict[tuple[Condition, ...], Claim] = {}
    for access in found:
        claim = _claim(access) if isinstance(access, Access) else None
        if claim is None:
            why = access.why if isinstance(access, Unread) else OTHER
            unknown[access.array, why] += 1
            continue
        known += 1
        when = canonical(claim.when)
        if when is None:
            continue  # an empty range: no element is accessed
        before = claims.get(when, Claim(when, (), ()))
        claims[when] = Claim(when, (*before.uses, *claim.uses), (*before.follows, *claim.follows))
    shapes = {name: each["attributes"].get("shape", ()) for name, each in arrays_of(sdfg).items()}
    left = tuple(Unknown(array, why, count) for (array, why), count in sorted(unknown.items()))
    return Bounds(known, simplified(claims.values(), shapes), left)


def _claim(access: Access) -> Claim | None:
    """What an access claims in all rounds of its loops; None if its elements are not known."""
    when = list(access.conditions)
    variables = _variables(access)
    for loop in access.ranges:
        if (loop.first.symbols | loop.last.symbols) & variables:
            return None
        when.append(Condition(loop.first, "<", loop.last + 1))
    uses: list[Use] = []
    follows: list[Follow] = []
    for axis, indices in enumerate(access.axes):
        if isinstance(indices, Lookup):
            follow = _follow(access, axis, indices)
            if follow is None:
                return None
            follows.append(follow)
            continue
        first, last = indices
        lowest, highest = _extreme(first, access.ranges, "min"), _extreme(last, access.ranges, "max")
        if lowest is None or highest is None:
            return None
        if first != last:
            if not _same_length(first, last, variables):
                return None
            when.append(Condition(Expression(), "<", last - first + 1))  # without the variables that both have
        if access.sizes is None:
            uses.append(Use(access.array, axis, (lowest,), (highest,)))
    if any(each.left.symbols & variables or each.right.symbols & variables for each in when):
        return None
    claim = Claim(tuple(when), tuple(uses), tuple(follows))
    return claim if all(parse(str(each)) == each for each in claim.expressions) else None  # within the limits


def _same_length(first: Expression, last: Expression, variables: set[str]) -> bool:
    """Whether a subset has equally many elements in all rounds, so that one condition tells if it is empty."""
    return not (last - first).symbols & variables


def _follow(access: Access, axis: int, lookup: Lookup) -> Follow | None:
    first, last = (_extreme(lookup.row, access.ranges, which) for which in _ENDS)
    left, right = (_extreme(lookup.column, access.ranges, which) for which in _ENDS)
    if first is None or last is None or left is None or right is None or lookup.plus.symbols & _variables(access):
        return None
    if not _is_dense(lookup, _variables(access)):
        return None
    if not left.is_constant or not right.is_constant or not 0 <= left.constant <= right.constant < MOST_COLUMNS:
        return None
    columns = tuple(range(left.constant, right.constant + 1))
    if access.sizes is None:
        return Follow(lookup.table, (first,), (last,), columns, lookup.plus, access.array, axis)
    size = access.sizes[axis]
    return None if size is None else Follow(lookup.table, (first,), (last,), columns, lookup.plus, size=size)


def _is_dense(lookup: Lookup, variables: set[str]) -> bool:
    """Whether all elements between the first and the last row, in all these columns, are read."""
    terms = [Expression(0, (term,)) for index in (lookup.row, lookup.column) for term in index.terms]
    moving = [term for term in terms if term.symbols & variables]
    names = [name for term in moving for name in term.symbols & variables]
    return all(abs(factor) == 1 for term in moving for _, factor in term.terms) and len(names) == len(set(names))


def _variables(access: Access) -> set[str]:
    return {each.variable for each in access.ranges}


_ENDS: tuple[Literal["min"], Literal["max"]] = ("min", "max")


def _extreme(value: Expression, ranges: Iterable[Range], which: Literal["min", "max"]) -> Expression | None:
    """The least or the greatest value over all rounds of the loops; None if it rises and falls with one variable."""
    for loop in ranges:
        direction = _direction(value, loop.variable)
        if direction is None:
            return None
        if direction:
            end = loop.last if (direction > 0) == (which == "max") else loop.first
            value = value.replace({loop.variable: end})
    return value


def _direction(value: Expression, variable: str) -> int | None:
    """1 if an expression never falls as a variable rises, -1 if it never rises, 0 without it, None if it is unclear."""
    found = {sign for atom, factor in value.terms if (sign := _of_atom(atom, variable, factor)) != 0}
    return None if len(found) > 1 or None in found else next(iter(found), 0)


def _of_atom(atom: Atom, variable: str, factor: int) -> int | None:
    sign = 1 if factor > 0 else -1
    if isinstance(atom, str):
        return sign if atom == variable else 0
    found = {each for part in atom.of if (each := _direction(part, variable)) != 0}
    inner = next(iter(found), 0)
    return None if len(found) > 1 or inner is None else sign * inner
