"""
Which scalars of a granule are sizes: a program accesses the elements of an array up to them. An array that begins at
index 0 or above has none before that, so that a negative size is a mistake of the host: the program would do nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from gtstub.programs.granule.description import ArrayValue, Call, Description, GranuleScalar, Variable
from gtstub.stub.plan.model import CallPlan, Value

SIGNED = ("int8", "int16", "int32", "int64")


def with_sizes(granule: Description, plans: Sequence[CallPlan]) -> Description:
    """The granule, with the least values of its sizes. `plans` are those of its programs."""
    found = {number for step in granule.steps for call in step.calls for number in _sizes(call, plans[call.program])}
    scalars = tuple(_with_least(scalar) if number in found else scalar for number, scalar in enumerate(granule.scalars))
    return dataclasses.replace(granule, scalars=scalars)


def _with_least(scalar: GranuleScalar) -> GranuleScalar:
    """A size that was negative when the granule was exported may be so again."""
    is_natural = scalar.dtype in SIGNED and isinstance(scalar.value, int) and scalar.value >= 0
    return dataclasses.replace(scalar, least=0) if is_natural else scalar


def _sizes(call: Call, plan: CallPlan) -> Iterator[int]:
    given = {argument.name: argument.value for argument in call.arguments}
    scalars = {
        slot.name: value.scalar
        for slot in plan.values
        if isinstance(slot.source, Value) and isinstance(value := given[slot.source.leaf.path], Variable)
    }
    for used in (each for bounds in plan.bounds for each in bounds.indices):
        if not any(_starts_at_0_or_above(given[leaf.path], axis) for leaf, axis in used.of.axes):
            continue
        for name, factor, constant in filter(None, (each.linear for each in used.highest)):
            if factor == 1 and constant < 0 and name in scalars:
                yield scalars[name]


def _starts_at_0_or_above(value: object, axis: int) -> bool:
    return isinstance(value, ArrayValue) and (not value.origin or value.origin[axis] >= 0)
