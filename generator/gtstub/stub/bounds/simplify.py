"""Leaves out of the claims of an SDFG what others say already, or what is true of any array."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from gtstub.stub.signature.expressions import Expression, Extremum, Operation, difference, parse
from gtstub.stub.signature.model import Claim, Condition, Follow, Relation, Use, relates


def simplified(
    claims: Iterable[Claim], shapes: Mapping[str, Sequence[str]], said: Sequence[Claim] = ()
) -> tuple[Claim, ...]:
    """
    The same claims with few comparisons, those under fewer conditions first. `shapes` are those of the arguments, and
    `said` are other claims.
    """
    made: list[Claim] = []
    for claim in sorted(_without_cases(claims), key=lambda claim: (len(claim.when), tuple(map(str, claim.when)))):
        uses = [use for use in _merged_uses(claim) if not _is_given(use, shapes)]
        merged = Claim(claim.when, tuple(uses), tuple(_merged_follows(claim.follows)))
        if (left := _unsaid(merged, (*said, *made))) is not None:
            made += _within_limits(left)
    return tuple(made)


def says(claims: Iterable[Claim], claim: Claim) -> bool:
    """Whether some claims contain another one."""
    return _unsaid(dataclasses.replace(claim, when=normalized(claim.when) or ()), claims) is None


def _unsaid(claim: Claim, others: Iterable[Claim]) -> Claim | None:
    """What a claim says, and no other one under some of its conditions; None if that is nothing."""
    weaker = [other for other in others if set(other.when) <= set(claim.when)]
    uses = [use for use in claim.uses if not any(_covers(each, use) for other in weaker for each in other.uses)]
    follows = [
        follow
        for follow in claim.follows
        if not any(_follows_too(each, follow) for other in weaker for each in other.follows)
    ]
    return Claim(claim.when, tuple(uses), tuple(follows)) if uses or follows else None


MOST_ENDS = 100
"""What a signature may contain (signature/schema/sdfg.schema.json)."""


def _within_limits(claim: Claim) -> Iterator[Claim]:
    """
    A claim as several of which none has more expressions for an end than a signature may contain. Raises ValueError for
    too many conditions.
    """
    if len(claim.when) > MOST_ENDS:
        raise ValueError("there are too many conditions")
    uses = [
        dataclasses.replace(use, lowest=lowest, highest=highest)
        for use in claim.uses
        for lowest, highest in itertools.product(
            itertools.batched(use.lowest, MOST_ENDS), itertools.batched(use.highest, MOST_ENDS)
        )
    ]
    yield dataclasses.replace(claim, uses=tuple(uses))


def _without_cases(claims: Iterable[Claim]) -> list[Claim]:
    """The same claims, where what two claims say for `a == b` and for `a != b` is said once, without the condition."""
    left = {claim.when: claim for claim in claims}
    for when in sorted(left, key=lambda when: (-len(when), str(when))):
        for condition in when:
            if condition.relation != "==":
                continue
            others = tuple(each for each in when if each != condition)
            opposite = Condition(condition.left, "!=", condition.right)
            twin = tuple(sorted((*others, opposite), key=str))
            if twin in left:
                a, b, both = left[when], left[twin], left.get(others, Claim(others, (), ()))
                uses = tuple(use for use in a.uses if use in b.uses)
                follows = tuple(follow for follow in a.follows if follow in b.follows)
                left[others] = Claim(others, (*both.uses, *uses), (*both.follows, *follows))
    return list(left.values())


def _merged_uses(claim: Claim) -> list[Use]:
    by_axis: dict[tuple[str, int], list[Use]] = collections.defaultdict(list)
    for use in claim.uses:
        by_axis[use.array, use.axis].append(use)
    positive = {each.right - each.left for each in claim.when if each.relation == "<"}
    return [
        Use(
            array,
            axis,
            _ends((value for use in each for value in use.lowest), "min", positive),
            _ends((value for use in each for value in use.highest), "max", positive),
        )
        for (array, axis), each in sorted(by_axis.items())
    ]


def _merged_follows(follows: Iterable[Follow]) -> list[Follow]:
    by_target: dict[Follow, list[Follow]] = collections.defaultdict(list)
    for each in follows:
        by_target[dataclasses.replace(each, columns=())].append(each)
    made = []
    for target, group in by_target.items():
        columns = tuple(sorted({column for each in group for column in each.columns}))
        made.append(dataclasses.replace(target, columns=columns))
    return sorted(made, key=str)


def _ends(
    values: Iterable[Expression], which: Literal["min", "max"], positive: Collection[Expression]
) -> tuple[Expression, ...]:
    """
    The expressions of which the extreme one counts. Those that another one always exceeds are left out; expressions in
    `positive` are above 0.
    """
    flat: set[Expression] = set()
    for value in values:
        flat |= set(parts_of(value, which))
    sign = 1 if which == "max" else -1

    def exceeds(other: Expression, value: Expression) -> bool:
        return all(_is_positive(part, positive) for part in parts_of((other - value) * sign, "min"))

    kept = [value for value in flat if not any(exceeds(other, value) for other in flat)]
    return tuple(sorted(kept or flat, key=str))  # Under conditions that contradict each other, all may be exceeded.


def _is_positive(value: Expression, positive: Collection[Expression]) -> bool:
    if value.is_constant:
        return value.constant > 0
    return any((found := difference(value, each)) is not None and found >= 0 for each in positive)


def is_at_least(a: Expression, b: Expression) -> bool:
    """Whether a is not less than b for all values of the symbols, as far as that can be seen."""
    return all(
        any(each.is_constant and each.constant >= 0 for each in parts_of(part, "max"))
        for part in parts_of(a - b, "min")
    )


MOST_PARTS = 16
"""The most parts of an expression that are looked at, because sums of minima have exponentially many."""


def parts_of(value: Expression, which: Literal["min", "max"]) -> list[Expression]:
    """min(a, b) + c as a + c and b + c, if the least one counts; likewise the greatest."""
    found = [value]
    while len(found) <= MOST_PARTS:
        split = [_split(each, which) for each in found]
        if all(len(each) == 1 for each in split):
            return found
        found = [part for each in split for part in each]
    return [value]


def _split(value: Expression, which: Literal["min", "max"]) -> list[Expression]:
    for atom, factor in value.terms:
        if isinstance(atom, Extremum) and (atom.which == which) == (factor > 0) and abs(factor) == 1:
            rest = value - Expression(0, ((atom, factor),))
            return [rest + each * factor for each in atom.of]
    return [value]


def _is_given(use: Use, shapes: Mapping[str, Sequence[str]]) -> bool:
    """Whether an array has these elements whatever its size is, if it has any."""
    size = parse(shapes[use.array][use.axis])
    return (
        size is not None
        and all(is_at_least(value, Expression()) for value in use.lowest)
        and all(is_at_least(size - 1, value) for value in use.highest)
    )


def _covers(a: Use, b: Use) -> bool:
    """Whether `a` has all elements that `b` has."""
    if (a.array, a.axis) != (b.array, b.axis):
        return False
    return all(any(is_at_least(other, mine) for mine in a.lowest) for other in b.lowest) and all(
        any(is_at_least(mine, other) for mine in a.highest) for other in b.highest
    )


def _follows_too(a: Follow, b: Follow) -> bool:
    """Whether `a` demands of a table all that `b` demands: without -1, if `a` does not skip it."""
    is_stricter = a.skips <= b.skips and set(b.columns) <= set(a.columns)
    return is_stricter and dataclasses.replace(a, columns=(), skips=True) == dataclasses.replace(
        b, columns=(), skips=True
    )


# --- Conditions -------------------------------------------------------------------------------------------------------


def normalized(conditions: Iterable[Condition]) -> tuple[Condition, ...] | None:
    """
    The conditions without those that always hold, in the order of their texts, so that equal ones are found. None if
    one of them never holds.
    """
    found: set[Condition] = set()
    for condition in conditions:
        for difference_ in at_once(condition):
            if difference_.is_constant:
                if not relates(0, condition.relation, difference_.constant):
                    return None
            else:
                found.add(_of_difference(condition.relation, difference_))
    return tuple(sorted(found, key=str))


def at_once(condition: Condition) -> list[Expression]:
    """The differences of right and left that all must satisfy the relation: each one in a minimum must be above 0."""
    whole = condition.right - condition.left
    if condition.relation != "<":
        return [whole]
    return _above_zero(whole)


def _above_zero(value: Expression) -> list[Expression]:
    """What must be above 0 if a value is: all parts of a minimum, a of max(a, 0), and a - 3 of int_floor(a, 2) - 1."""
    parts = parts_of(value, "min")
    if len(parts) > 1:
        return [each for part in parts for each in _above_zero(part)]
    above = [each for each in parts_of(value, "max") if not (each.is_constant and each.constant <= 0)]
    made = above[0] if len(above) == 1 else value
    match made.terms:
        case ((Operation(which="int_floor", left=left) as atom, 1),) if atom.divisor and made.constant <= 0:
            made = left + ((made.constant - 1) * atom.divisor + 1)
    return [made] if made == value else _above_zero(made)


def _of_difference(relation: Relation, difference_: Expression) -> Condition:
    """The relation of the terms that are subtracted to those that are added."""
    minus = Expression(0, tuple((atom, -factor) for atom, factor in difference_.terms if factor < 0))
    plus = Expression(0, tuple((atom, factor) for atom, factor in difference_.terms if factor > 0))
    if difference_.constant > 0:
        return Condition(minus, relation, plus + difference_.constant)
    return Condition(minus - difference_.constant, relation, plus)
