"""
Which kept arrays need no content at the start: in each step that has such an array, programs overwrite all elements
that they read, before they read them. In doubt an array needs its content.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from gtstub.entries.cache.entry import LOWERED_SDFG
from gtstub.programs.contents import Contents, contents, unknown_contents
from gtstub.programs.granule.collect import Collected
from gtstub.programs.granule.description import ArrayValue, Call, Constant, GranuleStep, HookCall
from gtstub.programs.layout import Layout
from gtstub.stub.plan.model import AxisValue, CallPlan, Slot, Value
from gtstub.stub.sdfg.model import Sdfg
from gtstub.stub.sdfg.read import SdfgError, read
from gtstub.stub.signature.documents import sdfg_in
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.model import INDEX_TYPES, ScalarArgument


def temporaries(collected: Collected, named: Collection[Layout]) -> frozenset[int]:
    """
    The arrays that need no content, by their numbers. Those that the user has `named` need it, because the host may
    look at one or swap it before a step runs.
    """
    description = collected.description
    left = _candidates(collected)
    left -= {number for number in left if collected.layouts[number] in named}
    programs = _Programs(collected)
    for step in description.steps:
        left -= {array for array in left if programs.needs_content(step, array)}
    return frozenset(left)


def _candidates(collected: Collected) -> set[int]:
    """Arrays that the granule keeps, that programs write, and that no hook and no section has."""
    arrays = collected.description.arrays
    found = {number for number, array in enumerate(arrays) if not array.is_argument and array.written}
    for step in collected.description.steps:
        for position in step.positions:
            if isinstance(position, HookCall):
                found -= set(position.arrays)
            else:
                found -= {each.array for each in position.arrays if each.section is not None}
    return found


class _Programs:
    """The programs of a granule. Their SDFGs are read when they are needed."""

    def __init__(self, collected: Collected) -> None:
        self._layouts = collected.layouts
        self._programs = list(map(_Program, collected.entries, collected.plans))
        self._calls: dict[Call, Mapping[int, Sequence[Contents]]] = {}

    def needs_content(self, step: GranuleStep, array: int) -> bool:
        """Whether a step may read elements of an array that it has not overwritten before."""
        is_new = np.zeros(self._layouts[array].shape, np.bool_)
        for call in step.calls:
            if all(each.array != array for each in call.arrays):
                continue
            found = self._contents(call)[array]
            if not all(is_new[box].all() for each in found for box in each.read):
                return True
            for each in found:
                for box in each.overwritten:
                    is_new[box] = True
        return False

    def _contents(self, call: Call) -> Mapping[int, Sequence[Contents]]:
        """What a call does to arrays, for each argument that has an array as a whole."""
        if call not in self._calls:
            self._calls[call] = self._programs[call.program].contents(call, self._layouts)
        return self._calls[call]


class _Program:
    """A program of a cache entry."""

    def __init__(self, entry: Path, plan: CallPlan) -> None:
        self._entry = entry
        self._plan = plan

    def contents(self, call: Call, layouts: Sequence[Layout]) -> Mapping[int, Sequence[Contents]]:
        given = {argument.name: argument.value for argument in call.arguments}
        wholes: dict[str, tuple[int, Layout]] = {}
        for leaf in self._plan.fields:
            value = given[leaf.path]
            if isinstance(value, ArrayValue) and value.section is None:
                wholes[leaf.array.name] = value.array, layouts[value.array]
        sizes = {name: layout.shape for name, (_, layout) in wholes.items()}
        values = {slot.name: known for slot in self._plan.values if (known := _value(slot, given, layouts)) is not None}
        made = unknown_contents(sizes) if self._sdfg is None else contents(self._sdfg, self._scalars, values, sizes)
        found: dict[int, list[Contents]] = {}
        for name, (number, _) in wholes.items():
            found.setdefault(number, []).append(made[name])
        return found

    @functools.cached_property
    def _scalars(self) -> Mapping[str, DType]:
        signature = sdfg_in(self._entry / "sdfg.json")
        return {each.name: each.dtype for each in signature.values if isinstance(each, ScalarArgument)}

    @functools.cached_property
    def _sdfg(self) -> Sdfg | None:
        try:
            return read(self._entry / LOWERED_SDFG)
        except SdfgError:
            return None


def _value(slot: Slot, given: Mapping[str, object], layouts: Sequence[Layout]) -> int | None:
    """What the SDFG gets for a slot in each call; None if that is not known, or no integer."""
    match slot.source:
        case Value(leaf=leaf):
            value = given[leaf.path]
            number = value.value if isinstance(value, Constant) and value.dtype in INDEX_TYPES else None
            return int(number) if isinstance(number, int) else None
        case AxisValue(leaf=field):
            array = given[field.path]
            return _axis_value(slot.source, array, layouts[array.array]) if isinstance(array, ArrayValue) else None
    return None


def _axis_value(source: AxisValue, array: ArrayValue, layout: Layout) -> int:
    axis, section = source.axis, array.section
    if section is None:
        size, stride = layout.shape[axis], layout.strides[axis]
    else:
        size, stride = section.shape[axis], section.steps[axis] * layout.strides[section.axes[axis]]
    start = array.origin[axis] if array.origin else 0
    return source.of(start, size, stride)
