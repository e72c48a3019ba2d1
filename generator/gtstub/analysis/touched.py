"""Which elements of its arrays a call of an SDFG is sure to reach, where its scalars and its tables are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gtstub.analysis.bounds.access import Access, Lookup
from gtstub.analysis.bounds.extremes import extremes
from gtstub.analysis.contents import holds, range_of, value_of
from gtstub.signature.expressions import Expression

Elements = tuple[Any, ...]
"""For each axis of an array a slice or an array of indices; all their combinations are meant."""


def touched(
    access: Access, sizes: Sequence[int], values: Mapping[str, int], tables: Mapping[str, Any]
) -> Elements | None:
    """The elements that an access reaches, by the indices of each axis alone; None if that is not known, or nothing."""
    loops = [range_of(loop, values) for loop in access.loops]
    if any(each is None or each.start >= each.stop for each in loops):
        return None
    if any(holds(each, values) is not True for each in access.conditions):
        return None
    found = [
        _of_table(axis, access, size, values, tables)
        if isinstance(axis, Lookup)
        else _span(*axis, access, size, values)
        for axis, size in zip(access.axes, sizes, strict=True)
    ]
    return None if any(each is None for each in found) else tuple(found)


def _span(first: Expression, last: Expression, access: Access, size: int, values: Mapping[str, int]) -> slice | None:
    lowest, highest = extremes(first, last, access.loops)
    low = None if lowest is None else value_of(lowest, values)
    high = None if highest is None else value_of(highest, values)
    if low is None or high is None or low > high:
        return None
    return slice(max(low, 0), min(high + 1, size))


def _of_table(lookup: Lookup, access: Access, size: int, values: Mapping[str, int], tables: Mapping[str, Any]) -> Any:
    """The indices that a table has in the rows and columns of an access."""
    import numpy as np

    table, plus = tables.get(lookup.table), value_of(lookup.plus, values)
    if table is None or plus is None:
        return None
    rows, columns = (
        _span(each, each, access, length, values)
        for each, length in zip((lookup.row, lookup.column), table.shape, strict=True)
    )
    if rows is None or columns is None:
        return None
    found = np.unique(table[rows, columns])
    found = found[found >= 0] + plus
    return found[(found >= 0) & (found < size)]
