"""
The bounds of an SDFG in terms of the program's arguments.

The SDFG counts elements of an array from 0. A program counts indices of a dimension, and the start of the array is the
index of element 0. After the start is added, most expressions no longer contain it, and many become constants.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gtstub.stub.plan.model import METRICS_LEVEL, CallBounds, FieldLeaf, FollowedTable, Leaf, UsedAxes, UsedIndices
from gtstub.stub.plan.signatures import Signatures
from gtstub.stub.signature.expressions import LARGEST_CONSTANT, Expression, difference, symbol
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import (
    CONNECTIVITY_PREFIX,
    INDEX_TYPES,
    ArrayArgument,
    Claim,
    Condition,
    Follow,
    ScalarArgument,
    Use,
    relates,
)

READ_TYPES = ("int32", "int64")
"""The dtypes of tables that the runtime reads."""


def claims_of_dimensions(signatures: Signatures) -> Iterator[Claim]:
    """The claims of the SDFG signature, with indices of dimensions in place of numbers of elements."""
    facts = {fact.name: fact for fact in signatures.bounds.facts}
    for claim in signatures.bounds.claims:
        if _depends_on_metrics(signatures, claim.symbols):
            continue  # It is about the measured time, which is no argument.
        for name in sorted(claim.symbols - facts.keys()):
            argument = signatures.arguments.get(name)
            if not isinstance(argument, ScalarArgument) or argument.dtype not in INDEX_TYPES:
                raise signatures.refusal(
                    f"the bounds depend on '{name}', which is no integer among the SDFG's arguments"
                )
        if (when := _left(claim.when)) is None:
            continue
        uses = (_use(signatures, each) for each in claim.uses)
        follows = (_follow(signatures, each) for each in claim.follows)
        yield dataclasses.replace(
            claim,
            when=when,
            uses=tuple(each for each in uses if each is not None),
            follows=tuple(each for each in follows if each is not None),
        )


def _depends_on_metrics(signatures: Signatures, symbols: frozenset[str]) -> bool:
    facts = (fact.symbols for fact in signatures.bounds.facts if fact.name in symbols)
    return METRICS_LEVEL in symbols.union(*facts)


def _left(when: Iterable[Condition]) -> tuple[Condition, ...] | None:
    """The conditions that depend on values of symbols; None if one of the others does not hold."""
    values = [(each, _value(each)) for each in when]
    return (
        None if any(value is False for _, value in values) else tuple(each for each, value in values if value is None)
    )


def _value(condition: Condition) -> bool | None:
    """Whether a condition holds, if that is the same for all values of its symbols."""
    found = difference(condition.left, condition.right)
    return None if found is None else relates(found, condition.relation, 0)


def constant_bounds(claims: Iterable[Claim]) -> Mapping[tuple[str, int], tuple[int, int]]:
    """The lowest and the highest index that every call accesses, by array and axis, where they are constants."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for claim in claims:
        for use in claim.uses:
            if _is_constant(claim, use):
                ends = [each.constant for each in use.lowest], [each.constant for each in use.highest]
                known = found.get((use.array, use.axis))
                lowest, highest = ends if known is None else ([*ends[0], known[0]], [*ends[1], known[1]])
                found[use.array, use.axis] = min(lowest), max(highest)
    return found


def call_bounds(signatures: Signatures, claims: Iterable[Claim], leaves: Iterable[Leaf]) -> tuple[CallBounds, ...]:
    """
    The bounds that differ between calls, and those of tables. Elements on which no result depends are not among them:
    the SDFG reads whatever is in memory there, as with gt4py.
    """
    fields = {leaf.name: leaf for leaf in leaves if isinstance(leaf, FieldLeaf)}
    used: dict[Any, UsedAxes] = {}
    made = []
    for claim in claims:
        if not claim.is_needed:
            continue
        axes: defaultdict[tuple[Any, Any], list[tuple[FieldLeaf, int]]] = defaultdict(list)
        for use in claim.uses:
            if use.array in fields and not _is_constant(claim, use):
                axes[use.lowest, use.highest].append((fields[use.array], use.axis))
        indices = []
        for ends, each in axes.items():
            key = tuple((leaf.name, axis) for leaf, axis in each)
            of = used.setdefault(key, UsedAxes(len(used), tuple(each)))
            indices.append(UsedIndices(of, *ends))
        tables = tuple(
            FollowedTable(
                each,
                _checked_table(signatures, fields[each.table], each),
                None if each.array is None else fields[each.array],
            )
            for each in claim.follows
            if each.table in fields and (each.array is None or each.array in fields)
            if fields[each.table].dtype in READ_TYPES or not fields[each.table].is_connectivity
        )
        if indices or tables:
            made.append(CallBounds(claim.when, tuple(indices), tables))
    temporaries = signatures.bounds.temporaries or ()
    sized = (each for each in temporaries if not _depends_on_metrics(signatures, each.symbols))
    for when, extents in itertools.groupby(sized, key=lambda each: _left(each.when)):
        if when is not None:
            made.append(CallBounds(when, (), (), tuple(extents)))
    return tuple(made)


def unneeded_arrays(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The arrays of which the SDFG reads elements on which no result depends."""
    unneeded = (claim for claim in claims if not claim.is_needed)
    names = ((*(use.array for use in each.uses), *(follow.array for follow in each.follows)) for each in unneeded)
    return tuple(sorted({name for each in names for name in each if name is not None}))


def used_facts(signatures: Signatures, bounds: Iterable[CallBounds]) -> tuple[Fact, ...]:
    """The facts in the conditions of the bounds of calls."""
    names = frozenset().union(*(value.symbols for each in bounds for value in each.expressions))
    return tuple(each for each in signatures.bounds.facts if each.name in names)


def _checked_table(signatures: Signatures, table: FieldLeaf, follow: Follow) -> FieldLeaf:
    columns = table.axes[1].fixed.size if table.is_connectivity else None
    if columns is None or max(follow.columns) >= columns:
        raise signatures.refusal(
            f"the SDFG takes indices from column {max(follow.columns)} of '{table.path}', which no connectivity has"
        )
    return table


def _use(signatures: Signatures, use: Use) -> Use | None:
    start = _start(signatures, use.array, use.axis)
    if start is None:
        return None
    lowest, highest = (tuple(each + start for each in ends) for ends in (use.lowest, use.highest))
    return Use(use.array, use.axis, lowest, highest)


def _follow(signatures: Signatures, follow: Follow) -> Follow | None:
    if follow.array is None or follow.axis is None:
        return follow
    start = _start(signatures, follow.array, follow.axis)
    if start is None:
        return None
    return dataclasses.replace(follow, plus=follow.plus + start)


def _start(signatures: Signatures, array: str, axis: int) -> Expression | None:
    """The index of element 0 of an axis; None if it is not known, or if sums with it could overflow an int64."""
    if array.startswith(CONNECTIVITY_PREFIX):
        return Expression()
    argument = signatures.arguments[array]
    if (domain := signatures.domains.get(array)) is not None and axis < len(domain.ranges):
        start: int | None = domain.ranges[axis][0]
    else:
        start = argument.axes[axis].start if isinstance(argument, ArrayArgument) else None
    if start is not None:
        return Expression(start) if abs(start) <= LARGEST_CONSTANT else None
    name = signatures.start_symbols.get((array, axis))
    return None if name is None else symbol(name)


def _is_constant(claim: Claim, use: Use) -> bool:
    return claim.is_needed and not claim.when and all(each.is_constant for each in (*use.lowest, *use.highest))
