"""
Which elements of its arrays an SDFG is sure to overwrite, and which it may read, in a call whose scalars are known.

What is not understood is not overwritten, and read. Indices count from 0, the first element of an array.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from gtstub.stub.bounds.access import Access, AnyOf, BoundedLoop, Lookup, Unread
from gtstub.stub.bounds.extremes import extremes
from gtstub.stub.bounds.regions import accesses
from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.model import Sdfg, sdfgs_in, states_in
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.model import Condition, relates

Box = tuple[slice, ...]
"""Elements of an array: a range of indices for each axis."""


@dataclasses.dataclass(frozen=True)
class Contents:
    """
    What a call does to the content of an array. Each box of `overwritten` is written as a whole. All that is read lies
    in the boxes of `read`; what the call itself has written before it reads is not left out.
    """

    overwritten: tuple[Box, ...] = ()
    read: tuple[Box, ...] = ()


def contents(
    sdfg: Sdfg,
    scalars: Mapping[str, DType],
    values: Mapping[str, int],
    arrays: Mapping[str, Sequence[int]],
) -> Mapping[str, Contents]:
    """
    What a call does to `arrays`, arguments of the SDFG that are given with their sizes. `scalars` are the scalar
    arguments of the SDFG, and `values` those that are known.
    """
    try:
        if _has_unclear_updates(sdfg):
            raise ValueError("what is combined with what is not known")
        found = accesses(sdfg, scalars).accesses
        return {
            name: _contents(name, sizes, found, values) if _is_argument(sdfg, name) else _unknown(sizes)
            for name, sizes in arrays.items()
        }
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RecursionError, MemoryError):
        return unknown_contents(arrays)


def _is_argument(sdfg: Sdfg, name: str) -> bool:
    """Whether an SDFG has an array under this name: it has members of structures, and results, under other names."""
    return name in sdfg.containers and not sdfg.containers[name].is_transient


def unknown_contents(arrays: Mapping[str, Sequence[int]]) -> Mapping[str, Contents]:
    """What is known of a call whose SDFG cannot be read: it may read all of each array."""
    return {name: _unknown(sizes) for name, sizes in arrays.items()}


def _unknown(sizes: Sequence[int]) -> Contents:
    return Contents(read=(_whole(sizes),))


def _has_unclear_updates(sdfg: Sdfg) -> bool:
    """Whether the results of a nested SDFG are combined with what is there: its own writes do not say so."""
    states = (Dataflow(state, each.containers) for each in sdfgs_in(sdfg) for state in states_in(each))
    return any(edge.is_wcr and state.nodes[edge.src].kind == "NestedSDFG" for state in states for edge in state.edges)


def _contents(name: str, sizes: Sequence[int], found: Sequence[Access | Unread], values: Mapping[str, int]) -> Contents:
    overwritten: list[Box] = []
    read: list[Box] = []
    for access in found:
        if isinstance(access, Unread):
            # One of an argument that is not known may be one of this. An unknown write may hide a read, as when a
            # nested SDFG has the array as input and as output.
            if access.array in (name, ""):
                read.append(_whole(sizes))
        elif access.array == name and access.sizes is None:
            if access.is_write and access.overwrites:
                overwritten += _overwritten(access, sizes, values)
            else:
                read += reached(access, sizes, values)
    return Contents(tuple(dict.fromkeys(overwritten)), tuple(dict.fromkeys(read)))


def _whole(sizes: Sequence[int]) -> Box:
    return tuple(slice(0, size) for size in sizes)


# --- What is sure to be written ---------------------------------------------------------------------------------------


def _overwritten(access: Access, sizes: Sequence[int], values: Mapping[str, int]) -> list[Box]:
    """The box that an access writes whole, if it is sure to write one: each axis has a point, or a loop of its own."""
    if not is_sure(access, values):
        return []
    loops = {loop.variable: range_of(loop, values) for loop in access.loops}
    used: set[str] = set()
    box: list[slice] = []
    for indices, size in zip(access.axes, sizes, strict=True):
        if isinstance(indices, Lookup) or indices[0] != indices[1]:
            return []
        variables = indices[0].symbols & loops.keys()
        if not variables:
            first = value_of(indices[0], values)
            made = None if first is None else slice(first, first + 1)
        else:
            made = _moved(indices[0], loops, values) if len(variables) == 1 and used.isdisjoint(variables) else None
        if made is None or made.start < 0 or made.stop > size:
            return []
        used |= variables
        box.append(made)
    return [tuple(box)]


def _moved(index: Expression, loops: Mapping[str, slice | None], values: Mapping[str, int]) -> slice | None:
    """The indices where a loop has its variable, plus or minus something constant; None for other expressions."""
    for term, factor in index.terms:
        if isinstance(term, str) and (found := loops.get(term)) is not None and abs(factor) == 1:
            rest = value_of(index - Expression(0, ((term, factor),)), values)
            if rest is None:
                return None
            ends = rest + factor * found.start, rest + factor * (found.stop - 1)
            return slice(min(ends), max(ends) + 1)
    return None


# --- What may be read -------------------------------------------------------------------------------------------------


def reached(access: Access, sizes: Sequence[int], values: Mapping[str, int]) -> list[Box]:
    """A box that has all that an access reaches; none if it is sure to reach nothing."""
    if any(holds(each, values) is False for each in access.conditions):
        return []
    if any((found := range_of(loop, values)) is not None and found.start >= found.stop for loop in access.loops):
        return []
    return [tuple(_ends(indices, size, access.loops, values) for indices, size in zip(access.axes, sizes, strict=True))]


def _ends(
    indices: tuple[Expression, Expression] | Lookup,
    size: int,
    loops: Sequence[BoundedLoop],
    values: Mapping[str, int],
) -> slice:
    """The indices on an axis, or all of them. Those outside of the array do not count."""
    found = None if isinstance(indices, Lookup) else span(*indices, size, loops, values)
    return slice(0, size) if found is None else found


def span(
    first: Expression, last: Expression, size: int, loops: Sequence[BoundedLoop], values: Mapping[str, int]
) -> slice | None:
    """The indices of an axis that an access spans, of those in the array; None if they are not known."""
    lowest, highest = extremes(first, last, loops)
    low = None if lowest is None else value_of(lowest, values)
    high = None if highest is None else value_of(highest, values)
    if low is None or high is None or low > high:
        return None
    return slice(min(max(low, 0), size), max(min(high + 1, size), 0))


# --- Values -----------------------------------------------------------------------------------------------------------


def is_sure(access: Access, values: Mapping[str, int]) -> bool:
    """Whether the loops around an access are known to have rounds, and its conditions to hold."""
    ranges = [range_of(loop, values) for loop in access.loops]
    has_rounds = all(each is not None and each.start < each.stop for each in ranges)
    return has_rounds and all(holds(each, values) is True for each in access.conditions)


def value_of(expression: Expression, values: Mapping[str, int]) -> int | None:
    """The value of an expression; None if that of a symbol in it is not known."""
    return expression.evaluate(values) if expression.symbols <= values.keys() else None


def range_of(loop: BoundedLoop, values: Mapping[str, int]) -> slice | None:
    """The values of a loop's variable; None if they are not known."""
    first, last = value_of(loop.first, values), value_of(loop.last, values)
    return None if first is None or last is None else slice(first, last + 1)


def holds(condition: Condition | AnyOf, values: Mapping[str, int]) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    if isinstance(condition, AnyOf):
        return False if all(any(holds(each, values) is False for each in case) for case in condition.cases) else None
    left, right = value_of(condition.left, values), value_of(condition.right, values)
    if left is None or right is None:
        return None
    return relates(left, condition.relation, right)
