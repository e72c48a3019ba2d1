"""Conditions on variables of loops, as fewer rounds of these loops."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gtstub.stub.bounds.access import Access, AnyOf, BoundedLoop
from gtstub.stub.bounds.conditions import MOST_CASES
from gtstub.stub.bounds.simplify import at_once, parts_of
from gtstub.stub.signature.expressions import Expression, Split, extremum, quotient, split
from gtstub.stub.signature.model import Condition


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
                elif factor > 0:
                    firsts.append(_floor(end + times, times, loop))
                else:
                    lasts.append(_floor(end + (times - 1), times, loop) - 1)
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
    """The factor of a loop's variable in a value, and the rest; None if the value is of another form."""
    part = split(value, loop.variable)
    return part if part is not None and part.factor.is_constant else None


def _floor(value: Expression, divisor: int, loop: BoundedLoop) -> Expression:
    """
    A quotient rounded down, of which C++ rounds a negative one up; 0 for a negative one if the variable of the loop is
    not negative.
    """
    found = quotient(extremum("max", (value, Expression())), divisor)
    if loop.first.is_constant and loop.first.constant >= 0:
        return found
    return found + quotient(extremum("min", (value - (divisor - 1), Expression())), divisor)
