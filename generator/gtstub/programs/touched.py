"""Which elements of its arrays a call of an SDFG is sure to reach, where its scalars and its tables are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gtstub.programs.contents import is_sure, span, value_of
from gtstub.stub.bounds.access import Access, Lookup

Elements = tuple[Any, ...]
"""For each axis of an array a slice or an array of indices; all their combinations are meant."""


def touched(
    access: Access, sizes: Sequence[int], values: Mapping[str, int], tables: Mapping[str, Any]
) -> Elements | None:
    """The elements that an access reaches, by the indices of each axis alone; None if that is not known, or nothing."""
    if not is_sure(access, values):
        return None
    found = [
        _of_table(axis, access, size, values, tables)
        if isinstance(axis, Lookup)
        else span(*axis, size, access.loops, values)
        for axis, size in zip(access.axes, sizes, strict=True)
    ]
    return None if any(each is None for each in found) else tuple(found)


def _of_table(lookup: Lookup, access: Access, size: int, values: Mapping[str, int], tables: Mapping[str, Any]) -> Any:
    """The indices that a table has in the rows and columns of an access."""
    import numpy as np

    table, plus = tables.get(lookup.table), value_of(lookup.plus, values)
    if table is None or plus is None:
        return None
    rows, columns = (
        span(each, each, length, access.loops, values)
        for each, length in zip((lookup.row, lookup.column), table.shape, strict=True)
    )
    if rows is None or columns is None:
        return None
    found = np.unique(table[rows, columns])
    found = found[found >= 0] + plus
    return found[(found >= 0) & (found < size)]
