"""Conditions on variables of loops, as fewer rounds of these loops."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from gtstub.analysis.bounds.access import Access, AnyOf
from gtstub.analysis.bounds.conditions import MOST_CASES
from gtstub.analysis.bounds.simplify import at_once, parts_of
from gtstub.signature.expressions import Expression, extremum, split
from gtstub.signature.model import Condition


def cases(access: Access) -> Sequence[Access] | None:
    """The access as one in each case of its conditions, in which all of them hold; None if there are too many."""
    found = list(itertools.islice(_cases(access.conditions, access.variables), MOST_CASES + 1))
    return [dataclasses.replace(access, conditions=each) for each in found] if len(found) <= MOST_CASES else None


def _cases(conditions: Iterable[Condition | AnyOf], variables: Collection[str]) -> Iterator[tuple[Condition, ...]]:
    for parts in itertools.product(*(_split(each, variables) for each in conditions)):
        yield tuple(itertools.chain.from_iterable(parts))


def _split(condition: Condition | AnyOf, variables: Collection[str]) -> Iterator[tuple[Condition, ...]]:
    """
    The cases of a condition. A variable that is not equal to something is less or greater, and one of the parts of a
    maximum is above 0 if the maximum is.
    """
    if isinstance(condition, AnyOf):
        for case in condition.cases:
            yield from _cases(case, variables)
    elif condition.relation == "!=" and is_about(condition, variables):
        yield (Condition(condition.left, "<", condition.right),)
        yield (Condition(condition.right, "<", condition.left),)
    elif condition.relation == "<" and is_about(condition, variables):
        every = (
            [each] if _limit(each, variables) or each.symbols.isdisjoint(variables) else parts_of(each, "max")
            for each in at_once(condition)
        )
        for parts in itertools.product(*every):
            yield tuple(Condition(Expression(), "<", each) for each in parts)
    else:
        yield (condition,)


def narrowed(access: Access) -> Access | None:
    """
    The same access in those rounds of its loops in which conditions on their variables hold, without these conditions.
    None if one of them is of another form, or about several variables.
    """
    variables = access.variables
    ends = {name: ([loop.first], [loop.last]) for name, loop in variables.items()}
    left: list[Condition] = []
    for condition in access.conditions:
        if isinstance(condition, AnyOf):
            return None
        if not is_about(condition, variables):
            left.append(condition)
            continue
        if condition.relation == "!=":
            return None
        for value in at_once(condition):
            if value.symbols.isdisjoint(variables):
                left.append(Condition(Expression(), condition.relation, value))
                continue
            limit = _limit(value, variables)
            if limit is None:
                return None
            name, is_first, end = limit
            firsts, lasts = ends[name]
            if condition.relation == "==":
                firsts.append(end)
                lasts.append(end)
            elif is_first:
                firsts.append(end + 1)
            else:
                lasts.append(end - 1)
    loops = []
    for loop in access.loops:
        firsts, lasts = ends[loop.variable]
        loops.append(dataclasses.replace(loop, first=extremum("max", firsts), last=extremum("min", lasts)))
    return dataclasses.replace(access, loops=tuple(loops), conditions=tuple(left))


def is_about(condition: Condition | AnyOf, variables: Collection[str]) -> bool:
    """Whether a condition mentions one of these variables."""
    if isinstance(condition, AnyOf):
        return any(is_about(each, variables) for case in condition.cases for each in case)
    return not (condition.left.symbols | condition.right.symbols).isdisjoint(variables)


def _limit(value: Expression, variables: Collection[str]) -> tuple[str, bool, Expression] | None:
    """The variable that must be above or, if it is subtracted, below what makes a value 0."""
    names = value.symbols & set(variables)
    part = split(value, name := next(iter(names))) if len(names) == 1 else None
    if part is None or part.factor not in (Expression(1), Expression(-1)):
        return None
    factor = part.factor.constant
    return name, factor > 0, part.rest * -factor
