"""Conditions on variables of loops, as fewer rounds of these loops."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gtstub.analysis.bounds.access import Access, AnyOf, BoundedLoop
from gtstub.analysis.bounds.conditions import MOST_CASES
from gtstub.analysis.bounds.simplify import at_once, parts_of
from gtstub.signature.expressions import Expression, Split, extremum, quotient, split
from gtstub.signature.model import Condition


def cases(access: Access) -> Sequence[Access] | None:
    """The access as one in each case of its conditions, in which all of them hold; None if there are too many."""
    found = list(itertools.islice(_cases(access.conditions, access.variables), MOST_CASES + 1))
    return [dataclasses.replace(access, conditions=each) for each in found] if len(found) <= MOST_CASES else None


def _cases(
    conditions: Iterable[Condition | AnyOf], variables: Mapping[str, BoundedLoop]
) -> Iterator[tuple[Condition, ...]]:
    for parts in itertools.product(*(_split(each, variables) for each in conditions)):
        yield tuple(itertools.chain.from_iterable(parts))


def _split(condition: Condition | AnyOf, variables: Mapping[str, BoundedLoop]) -> Iterator[tuple[Condition, ...]]:
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
        every = ([each] if _has_limit(each, variables) else parts_of(each, "max") for each in at_once(condition))
        for parts in itertools.product(*every):
            yield tuple(Condition(Expression(), "<", each) for each in parts)
    else:
        yield (condition,)


def narrowed(access: Access) -> Access | None:
    """
    The same access in those rounds of its loops in which conditions on their variables hold, without these conditions.
    A loop that ends at the variable of a loop around it has no empty rounds then: the outer loop leaves these out. None
    if a condition is of another form.
    """
    conditions: list[Condition] = []
    for condition in access.conditions:
        if isinstance(condition, AnyOf) or (condition.relation == "!=" and is_about(condition, access.variables)):
            return None
        conditions.append(condition)
    loops: list[BoundedLoop] = []
    for loop in reversed(access.loops):
        left: list[Condition] = []
        firsts, lasts = [loop.first], [loop.last]
        for condition in conditions:
            if not is_about(condition, (loop.variable,)):
                left.append(condition)
                continue
            for value in at_once(condition):
                if loop.variable not in value.symbols:
                    left.append(Condition(Expression(), condition.relation, value))
                    continue
                part = _part(value, loop)
                if part is None:
                    return None
                factor, end = part.factor.constant, part.rest * (-1 if part.factor.constant > 0 else 1)
                times = abs(factor)
                if condition.relation == "==":
                    only = quotient(end, times)
                    left.append(Condition(only * times, "==", end))
                    firsts.append(only)
                    lasts.append(only)
                elif times == 1:
                    (firsts if factor > 0 else lasts).append(end + (1 if factor > 0 else -1))
                elif factor > 0:  # These quotients may be greater than the true ones, but not if these are 0 or more.
                    firsts.append(quotient(extremum("max", (end + times, Expression())), times))
                else:
                    lasts.append(quotient(extremum("max", (end + (times - 1), Expression())), times) - 1)
        made = dataclasses.replace(loop, first=extremum("max", firsts), last=extremum("min", lasts))
        loops.insert(0, made)
        has_rounds = Condition(made.first, "<", made.last + 1)
        conditions = [*left, has_rounds] if is_about(has_rounds, access.variables) else left
    return dataclasses.replace(access, loops=tuple(loops), conditions=tuple(conditions))


def is_about(condition: Condition | AnyOf, variables: Collection[str]) -> bool:
    """Whether a condition mentions one of these variables."""
    if isinstance(condition, AnyOf):
        return any(is_about(each, variables) for case in condition.cases for each in case)
    return not (condition.left.symbols | condition.right.symbols).isdisjoint(variables)


def _has_limit(value: Expression, loops: Mapping[str, BoundedLoop]) -> bool:
    """Whether a value above 0 limits the variable of the innermost loop that occurs in it, or none."""
    innermost = [loop for name, loop in loops.items() if name in value.symbols][-1:]
    return all(_part(value, loop) is not None for loop in innermost)


def _part(value: Expression, loop: BoundedLoop) -> Split | None:
    """
    The factor of a loop's variable in a value, and the rest; None if the value is of another form. If the factor is
    neither 1 nor -1, the variable is not negative.
    """
    part = split(value, loop.variable)
    if part is None or not part.factor.is_constant:
        return None
    is_natural = loop.first.is_constant and loop.first.constant >= 0
    return part if is_natural or abs(part.factor.constant) == 1 else None
