"""
A sign that a captured step lacks something, such as a halo exchange: a program reads elements of an array that no
program of the step writes, although an earlier one writes others.

What is not known makes no sign: a program whose SDFG cannot be read, and an access that is not understood.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from gtstub import _host
from gtstub.entries.cache.entry import LOWERED_SDFG
from gtstub.errors import GtstubError
from gtstub.programs.contents import reached
from gtstub.programs.layout import Layout
from gtstub.programs.touched import Elements, touched
from gtstub.stub.bounds.access import Access, Unread
from gtstub.stub.bounds.regions import accesses
from gtstub.stub.plan.model import AxisValue, CallPlan, Slot, Value
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.sdfg.read import read
from gtstub.stub.signature.documents import program_in, sdfg_in
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.model import INDEX_TYPES, ScalarArgument
from gtstub.util.callables import title

MOST_RANGES = 4
"""Ranges of indices that a message has."""


@dataclasses.dataclass(frozen=True)
class _Use:
    """
    What a call does to an array: the elements that it is sure to read, and those that it may write, which are all if
    `writes` is None.
    """

    position: int
    program: str
    argument: str
    reads: Sequence[Elements]
    writes: Sequence[Elements] | None

    @property
    def place(self) -> str:
        return f"position {self.position} ('{self.program}')"


def unwritten(actions: Sequence[Any]) -> Iterator[str]:
    """
    Says for each array the first position that reads elements which none writes. `actions` are those of a step, without
    steps inside it. A function writes all of the arrays that it gets; one that gets none may write any array.
    """
    uses: dict[Layout, list[_Use]] = {}
    for number, action in enumerate(actions):
        is_call = isinstance(action, _host.BoundCall)
        if not (action.device == "cpu" if is_call else isinstance(action, _host.Action) and action.arrays):
            return
        for layout, use in _uses(number + 1, action) if is_call else _uses_of_function(number + 1, action):
            uses.setdefault(layout, []).append(use)
    extents = [(layout, *layout.extent) for layout in uses]
    for layout, low, high in extents:
        shares = (first < high and low < last for other, first, last in extents if other is not layout)
        if not any(shares):  # memory, with what is between their elements
            yield from _signs(layout.shape, uses[layout])


def _uses_of_function(position: int, action: _host.Action) -> Iterator[tuple[Layout, _Use]]:
    import numpy as np

    for value in action.arrays:
        array = getattr(value, "ndarray", value)
        if isinstance(array, np.ndarray):
            yield Layout.of(array), _Use(position, title(action.function), "", (), None)


def _signs(shape: tuple[int, ...], uses: Sequence[_Use]) -> Iterator[str]:
    import numpy as np

    writers = [use for use in uses if use.writes is None or use.writes]
    if not shape or not writers or any(use.writes is None for use in writers):
        return
    is_written = np.zeros(shape, np.bool_)
    for use in writers:
        for each in use.writes or ():
            is_written[np.ix_(*_indices(each, shape))] = True
    if is_written.all():
        return
    for use in uses:
        is_read = np.zeros(shape, np.bool_)
        for each in use.reads:
            is_read[np.ix_(*_indices(each, shape))] = True
        is_read &= ~is_written
        writer = next((each for each in writers if each.position < use.position), None)
        if writer is not None and is_read.any():
            yield (
                f"{use.place} reads {int(is_read.sum())} of {is_read.size} elements of argument '{use.argument}' that "
                f"no position writes, those at {_where(is_read)}, and {writer.place} writes others of them. If a halo "
                f"exchange fills them, it belongs between the two: gtstub.action(function, array)."
            )
            return


def _indices(elements: Elements, shape: tuple[int, ...]) -> list[Any]:
    import numpy as np

    return [
        np.arange(size)[each] if isinstance(each, slice) else each for each, size in zip(elements, shape, strict=True)
    ]


def _where(mask: Any) -> str:
    """The indices on the axis of which the fewest occur."""
    import numpy as np

    others = [tuple(each for each in range(mask.ndim) if each != axis) for axis in range(mask.ndim)]
    occurring = [np.flatnonzero(mask.any(axis=each)) for each in others]
    axis = min(range(mask.ndim), key=lambda each: len(occurring[each]) / mask.shape[each])
    ranges: list[list[int]] = []
    for index in map(int, occurring[axis]):
        if ranges and ranges[-1][1] == index - 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in ranges]
    more = [] if len(texts) <= MOST_RANGES else [f"{len(texts) - MOST_RANGES} more ranges"]
    *first, last = [*texts[:MOST_RANGES], *more]
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{'index' if len(occurring[axis]) == 1 else 'indices'} {listed} of axis {axis}"


# --- What a call does ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Program:
    plan: CallPlan
    accesses: Sequence[Access | Unread]


@functools.lru_cache(maxsize=256)
def _read(entry: Path) -> _Program | None:
    """The program of a cache entry; None if its SDFG cannot be read."""
    try:
        # Loading has compared digests, and validation takes as long as all else.
        signature = sdfg_in(entry / "sdfg.json", is_valid=True)
        scalars = {each.name: each.dtype for each in signature.values if isinstance(each, ScalarArgument)}
        found = accesses(read(entry / LOWERED_SDFG), scalars).accesses
        return _Program(make_plan(signature, program_in(entry / "program.json", is_valid=True)), found)
    except (GtstubError, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _uses(position: int, call: _host.BoundCall) -> Iterator[tuple[Layout, _Use]]:
    program = _read(Path(call.program.stub_path).parent)
    arrays, given, written = call.arrays, call.arguments, set(call.written)
    if program is None:
        for path, array in arrays.items():
            yield _layout(array), _Use(position, call.__name__, path, (), None if path in written else ())
        return
    fields = [leaf for leaf in program.plan.fields if leaf.path in arrays]
    values = {each.name: known for each in program.plan.values if (known := _value(each, given, arrays)) is not None}
    tables = {leaf.array.name: _table(_layout(arrays[leaf.path])) for leaf in fields if leaf.is_connectivity}
    for leaf in fields:
        layout = _layout(arrays[leaf.path])
        reads: list[Elements] = []
        writes: list[Elements] | None = []
        for each in program.accesses:
            if isinstance(each, Unread):
                if each.array in (leaf.array.name, "") and leaf.path in written:
                    writes = None
            elif each.array == leaf.array.name and each.sizes is None:
                if each.is_write and writes is not None:
                    writes += reached(each, layout.shape, values)
                elif not each.is_write and (found := touched(each, layout.shape, values, tables)) is not None:
                    reads.append(found)
        yield layout, _Use(position, call.__name__, leaf.path, reads, writes)


def _value(slot: Slot, given: Mapping[str, Any], arrays: Mapping[str, tuple[Any, ...]]) -> int | None:
    """What the SDFG gets for a slot; None if that is not known, or no integer."""
    match slot.source:
        case Value(leaf=leaf):
            value: Any = given.get(leaf.path)
            return int(value) if leaf.dtype in INDEX_TYPES and hasattr(value, "__index__") else None
        case AxisValue(leaf=field) if field.path in arrays:
            _, _, shape, strides, origin = arrays[field.path]
            axis = slot.source.axis
            return slot.source.of(origin[axis], shape[axis], strides[axis])
    return None


def _layout(array: tuple[int, str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]) -> Layout:
    address, dtype, shape, strides, _ = array
    return Layout(address, cast(DType, dtype), shape, strides)


def _table(layout: Layout) -> Any:
    """The indices in a table of two axes, not a copy; None for another one."""
    is_plain = len(layout.shape) == 2 and layout.has_elements and min(layout.strides) >= 0
    return layout.array() if is_plain else None
