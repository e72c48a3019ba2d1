"""
Judges what an SDFG signature says of the elements that a program accesses, by calls with arrays in guarded memory.

1. Arrays have exactly the elements that the signature says: the call is not refused, and accesses no others.
2. An array lacks one that is needed, at one end of one axis: the call is refused, and names program, argument and axis.
3. The same without the check: the call accesses the element that is not there.
4. Arrays have only the elements that are needed: the call is not refused, accesses no others, and has the same results.

Tables of neighbors get random indices, with both ends among them, where the signature says that they are used as
indices, and an index that no array has everywhere else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gtstub.stub.plan.model import FieldLeaf
from gtstub.stub.plan.signatures import Signatures
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.model import (
    CONNECTIVITY_PREFIX,
    INDEX_TYPES,
    ArrayArgument,
    Bounds,
    Claim,
    Condition,
    FieldType,
    Follow,
    ScalarArgument,
    TupleType,
    Type,
)
from tests.support.bounds_programs import BoundProgram
from tests.support.guarded_memory import Box, GuardedArray, Memory
from tests.support.hosting import Dimension, Domain, Field, Range
from tests.support.random_programs import leaves_of

Boxes = dict[str, Box]
Ends = dict[tuple[str, int], tuple[int, int]]
"""The lowest and the highest index that is used, by array and axis."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """
    How a program is called. `ranges` are the starts and stops of dimensions, `own_ranges` those of fields that differ,
    `scalars` the scalar arguments, by their flattened names. `skips` has the tables in which -1 may stand, and `copied`
    the arrays that the SDFG copies whole, so that it is the copy of which it accesses what they lack.
    """

    ranges: Mapping[str, tuple[int, int]]
    own_ranges: Mapping[str, Mapping[str, tuple[int, int]]] = dataclasses.field(default_factory=dict)
    scalars: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    skips: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`ends` are the ends that were judged, `problems` what is wrong, one sentence each."""

    ends: int
    problems: tuple[str, ...]


def judge(program: BoundProgram, setting: Setting, seed: int = 0) -> Verdict:
    """Judges all ends that the signature of a program states for calls of this kind."""
    judging = _Judging(program, setting, seed)
    try:
        problems = tuple(judging.problems())
        return Verdict(judging.ends, problems)
    finally:
        judging.memory.close()


def needed_ends(program: BoundProgram, setting: Setting) -> Ends:
    """The indices that a call needs of arrays with all elements."""
    judging = _Judging(program, setting, 0)
    try:
        return judging.used(judging.all, is_needed=True)
    finally:
        judging.memory.close()


class _Judging:
    def __init__(self, program: BoundProgram, setting: Setting, seed: int) -> None:
        assert program.sdfg.bounds is not None
        self.program, self.setting = program, setting
        self.bounds: Bounds = program.sdfg.bounds
        self.signatures = Signatures(program.sdfg, program.signature)
        self.random = np.random.default_rng(seed)
        self.memory = Memory(1 << 34)
        self.ends = 0
        self.leaves = {leaf.name: leaf for leaf in program.plan.leaves if isinstance(leaf, FieldLeaf)}
        self.fixed = {each.name: each for each in program.sdfg.arguments if isinstance(each, ArrayArgument)}
        self.arrays: dict[str, GuardedArray] = {}
        self.fields: dict[str, Any] = {}
        self.given: dict[str, tuple[Box, str]] = {}
        self.all: Boxes = self._all_boxes()
        self.unknown = {each.array for each in self.bounds.unknown}

    # --- Arguments

    def _all_boxes(self) -> Boxes:
        boxes: Boxes = {}
        for parameter in self.program.signature.parameters:
            for name, type_ in leaves_of(parameter):
                if isinstance(type_, FieldType) and type_.dims:
                    ranges = {**self.setting.ranges, **self.setting.own_ranges.get(name, {})}
                    boxes[name] = tuple(ranges[dim.name] for dim in type_.dims)
        for each in self.program.signature.connectivities:
            name = f"{CONNECTIVITY_PREFIX}{each.name}"
            ranges = {**self.setting.ranges, **self.setting.own_ranges.get(name, {})}
            boxes[name] = (ranges[each.source.name], (0, each.max_neighbors))
        return boxes

    def make_arrays(self) -> None:
        dtypes = {f"{CONNECTIVITY_PREFIX}{each.name}": each.dtype for each in self.program.signature.connectivities}
        for parameter in self.program.signature.parameters:
            dtypes |= {name: type_.dtype for name, type_ in leaves_of(parameter)}
        for name, box in self.all.items():
            values = _random(self.random, dtypes[name], tuple(max(0, stop - start) for start, stop in box))
            units = [axis for axis, each in enumerate(self._axes(name)) if each.stride == 1]
            origin = tuple(start for start, _ in box)
            self.arrays[name] = self.memory.array(name, values, origin, units[0] if units else None)

    def _axes(self, name: str) -> tuple[Any, ...]:
        return self.fixed[name].axes if name in self.fixed else ()

    def give(self, name: str, box: Box, side: str = "end") -> None:
        """Gives an array exactly the elements of a box in the next calls."""
        array = self.arrays[name].open(box, side)  # type: ignore[arg-type]
        self.given[name] = box, side
        if name.startswith(CONNECTIVITY_PREFIX):
            self.fields[name] = array
            return
        leaf = next(
            type_
            for parameter in self.program.signature.parameters
            for each, type_ in leaves_of(parameter)
            if each == name
        )
        dims = tuple(Dimension(dim.name) for dim in leaf.dims)
        self.fields[name] = Field(Domain(dims, tuple(Range(*pair) for pair in box)), array)

    def call(self, program: Any) -> None:
        statics = {each.leaf: each.value for each in self.program.signature.static_arguments}
        dtypes = {}
        for parameter in self.program.signature.parameters:
            dtypes |= {name: type_.dtype for name, type_ in leaves_of(parameter)}

        def value(name: str, type_: Type) -> Any:
            match type_:
                case TupleType():
                    return tuple(value(f"{name}_{i}", each) for i, each in enumerate(type_.elements))
                case FieldType() if type_.dims:
                    return self.fields[name]
            if name in statics:
                return np.dtype(dtypes[name]).type(statics[name])
            return np.dtype(dtypes[name]).type(self.setting.scalars.get(name, 1))

        arguments = {each.name: value(each.name, each.type) for each in self.program.signature.parameters}
        tables = {
            name.removeprefix(CONNECTIVITY_PREFIX): table
            for name, table in self.fields.items()
            if name.startswith(CONNECTIVITY_PREFIX)
        }
        program(**arguments, offset_provider=tables)

    # --- What the signature says

    def symbols(self, boxes: Boxes) -> dict[str, int]:
        found: dict[str, int] = {}
        for argument in self.program.sdfg.arguments:
            if not isinstance(argument, ScalarArgument):
                continue
            for role in self.signatures.roles(argument):
                start, stop = boxes[role.array][role.axis]
                if role.property != "stride":
                    found[argument.name] = {"start": start, "stop": stop, "size": stop - start}[role.property]
            if argument.name not in found and argument.dtype in INDEX_TYPES:
                found[argument.name] = int(self.setting.scalars.get(argument.name, 1))
        for fact in self.bounds.facts:
            found[fact.name] = bool(eval(fact.text, {}, {**found, **self.setting.scalars}))
        return found

    def holding(self, boxes: Boxes) -> list[Claim]:
        symbols = self.symbols(boxes)
        return [claim for claim in self.bounds.claims if all(_holds(each, symbols) for each in claim.when)]

    def used(self, boxes: Boxes, *, is_needed: bool = False) -> Ends:
        """The indices of each axis that a call with these arrays surely accesses, or those that it needs."""
        found: Ends = {}
        for array, axis, lowest, highest in self.each_use(boxes, is_needed=is_needed):
            low, high = found.get((array, axis), (lowest, highest))
            found[array, axis] = min(low, lowest), max(high, highest)
        return found

    def each_use(self, boxes: Boxes, *, is_needed: bool = False) -> Iterator[tuple[str, int, int, int]]:
        symbols = self.symbols(boxes)
        for claim in self.holding(boxes):
            for use in claim.uses if claim.is_needed >= is_needed else ():
                start = boxes[use.array][use.axis][0]
                lowest = min(each.evaluate(symbols) for each in use.lowest) + start
                highest = max(each.evaluate(symbols) for each in use.highest) + start
                yield use.array, use.axis, lowest, highest

    def drivers(self) -> set[str]:
        """The arrays whose own size says which elements are used, so that they cannot lack any."""
        roles = {
            argument.name: {role.array for role in self.signatures.roles(argument) if role.property != "stride"}
            for argument in self.program.sdfg.arguments
            if isinstance(argument, ScalarArgument)
        }
        found: set[str] = set()

        def add(value: Expression, array: str | None = None, axis: int | None = None) -> None:
            start = self.signatures.start_symbols.get((array or "", axis or 0))
            whole = value + Expression(0, ((start, 1),)) if start is not None else value
            for name in whole.symbols:
                found.update(roles.get(name, ()))

        for claim in self.bounds.claims:
            for condition in claim.when:
                add(condition.right - condition.left)
            for use in claim.uses:
                for value in (*use.lowest, *use.highest):
                    add(value, use.array, use.axis)
            for follow in claim.follows:
                for value in (*follow.first, *follow.last):
                    add(value)
                add(follow.plus, follow.array, follow.axis)
                if follow.size is not None:
                    add(follow.size)
        return found

    def is_free(self, name: str, axis: int) -> bool:
        """Whether calls may pass an array with another domain on an axis."""
        if name in {each.leaf for each in self.program.signature.static_domains}:
            return False
        if name.startswith(CONNECTIVITY_PREFIX) and axis == 1:
            return False
        axes = self._axes(name)
        return not axes or not set(axes[axis].given) - {"stride"}

    def exact(self) -> Boxes:
        """Arrays with exactly the elements that are used; those of which nothing is said have all elements."""
        drivers, used = self.drivers(), self.used(self.all)
        targets = {(f.array, f.axis) for claim in self.holding(self.all) for f in claim.follows}
        boxes = dict(self.all)
        for name, box in self.all.items():
            if name in drivers:
                continue
            made = []
            for axis, (start, stop) in enumerate(box):
                if (name, axis) in used and self.is_free(name, axis):
                    low, high = used[name, axis]
                    assert start <= low <= high < stop, f"the setting has no index {low} to {high} in {name}, {axis}"
                    # Tables have no origin.
                    first = start if name.startswith(CONNECTIVITY_PREFIX) else low
                    made.append((start, stop) if (name, axis) in targets else (first, high + 1))
                else:
                    made.append((start, stop))
            boxes[name] = tuple(made)
        assert self.used(boxes) == used, "the elements that are used depend on arrays that lack elements"
        return boxes

    # --- Tables

    def parts(
        self, boxes: Boxes, *, is_needed: bool = False
    ) -> list[tuple[Follow, str, range, tuple[int, ...], int, int]]:
        """Of each table that is followed: the rows and columns, and the least and the greatest index that fits."""
        symbols = self.symbols(boxes)
        found = []
        for claim in self.holding(boxes):
            for follow in claim.follows if claim.is_needed >= is_needed else ():
                first = min(each.evaluate(symbols) for each in follow.first)
                last = max(each.evaluate(symbols) for each in follow.last)
                plus = follow.plus.evaluate(symbols)
                if follow.array is not None and follow.axis is not None:
                    start, stop = boxes[follow.array][follow.axis]
                    size = stop - start
                else:
                    assert follow.size is not None
                    size = follow.size.evaluate(symbols)
                found.append((follow, follow.table, range(first, last + 1), follow.columns, -plus, size - 1 - plus))
        return found

    def fill_tables(self, boxes: Boxes, neutral: Mapping[tuple[str, int], int] | None = None) -> None:
        """
        Writes the tables for arrays with these elements. Those that are indices of an array and axis in `neutral` have
        this index alone; others have random ones.
        """
        parts = self.parts(boxes)
        for name in {each.table for claim in self.bounds.claims for each in claim.follows}:
            table = self.arrays[name].values
            least = np.full(table.shape, np.iinfo(np.int32).min, np.int64)
            most = np.full(table.shape, np.iinfo(np.int32).max, np.int64)
            is_used = np.zeros(table.shape, bool)
            for _, _, rows, columns, low, high in (each for each in parts if each[1] == name):
                place = np.ix_(rows, columns)
                least[place], most[place] = np.maximum(least[place], low), np.minimum(most[place], high)
                is_used[place] = True
            beyond = max((high for *_, high in parts), default=0) + 1
            values = np.where(is_used, self.random.integers(np.minimum(least, most), most, endpoint=True), beyond)
            if name.removeprefix(CONNECTIVITY_PREFIX) in self.setting.skips:
                values[is_used & (self.random.random(table.shape) < 0.2)] = -1
            for follow, _, rows, columns, low, high in (each for each in parts if each[1] == name):
                index = (neutral or {}).get((follow.array or "", -1 if follow.axis is None else follow.axis))
                if index is not None:
                    values[np.ix_(rows, columns)] = index
                elif not neutral and len(rows) and len(columns):
                    for end in (low, high):
                        row, column = self.random.choice(rows), self.random.choice(columns)
                        if least[row, column] <= end <= most[row, column]:
                            values[row, column] = end
            table[...] = values
        for name in self.arrays:
            if name.startswith(CONNECTIVITY_PREFIX):
                self.give(name, boxes[name])

    # --- Judging

    def problems(self) -> Iterator[str]:
        self.make_arrays()
        boxes = self.exact()
        for side in ("end", "start"):
            yield from self.not_refused(boxes, side)
        yield from self.each_claim(boxes)
        yield from self.one_less(boxes)
        yield from self.one_index_less(boxes)
        yield from self.only_needed(boxes)
        yield from self.not_refused(boxes, "end")

    def give_all(self, boxes: Boxes, side: str = "end") -> None:
        for name, box in boxes.items():
            self.give(name, box, side)
        self.fill_tables(boxes)

    def not_refused(self, boxes: Boxes, side: str) -> Iterator[str]:
        self.give_all(boxes, side)
        try:
            with self.memory.accesses() as found:
                self.call(self.program.checked)
        except ValueError as error:
            yield f"refused with all elements: {error}"
        for name, indices in found.items():
            if name not in self.unknown:
                yield f"'{name}' with {boxes.get(name)} is accessed at {sorted(indices)[:4]}"

    def each_claim(self, boxes: Boxes) -> Iterator[str]:
        """The ends of each claim are accessed on one side of each `where`, also where another claim exceeds it."""
        accessed: dict[str, set[Any]] = {}
        for is_true in (True, False):
            with self.choosing(is_true):
                self.give_all(boxes)
                for array in self.arrays.values():
                    if array.layout.unit_axis is None and not array.name.startswith(CONNECTIVITY_PREFIX):
                        array.close()
                with self.memory.accesses() as found:
                    self.call(self.program.unchecked)
                for name, indices in found.items():
                    accessed.setdefault(name, set()).update(indices)
        for name, axis, low, high in self.each_use(boxes):
            if self.arrays[name].layout.unit_axis is None and not name.startswith(CONNECTIVITY_PREFIX):
                self.ends += 2
                on_axis = {index[axis] for index in accessed.get(name, ())}
                for end in {low, high} - on_axis:
                    yield f"'{name}' is not accessed at {end} on axis {axis}"

    @contextlib.contextmanager
    def choosing(self, is_true: bool) -> Iterator[None]:
        """While masks are true, and fields positive, everywhere; or false and negative."""
        before = {name: array.values.copy() for name, array in self.arrays.items()}
        for array in self.arrays.values():
            if array.values.dtype.kind == "b":
                array.values[...] = is_true
            elif array.values.dtype.kind == "f":
                array.values[...] = abs(array.values) if is_true else -abs(array.values)
        yield
        for name, values in before.items():
            self.arrays[name].values[...] = values

    def only_needed(self, boxes: Boxes) -> Iterator[str]:
        """Arrays without the elements on which no result depends: results are the same."""
        fewer, drivers, needed = dict(boxes), self.drivers(), self.used(boxes, is_needed=True)
        targets = {(f.array, f.axis) for f, *_ in self.parts(boxes, is_needed=True)}
        for name, axis in self.used(boxes).keys() - targets:
            if name in drivers or not self.is_free(name, axis):
                continue
            start, _ = boxes[name][axis]
            low, high = needed.get((name, axis), (start, start - 1))
            low = start if name.startswith(CONNECTIVITY_PREFIX) else low
            fewer[name] = (*fewer[name][:axis], (low, high + 1), *fewer[name][axis + 1 :])
        if fewer == boxes:
            return
        self.give_all(boxes)
        results = []
        for each in (boxes, fewer):
            for name in self.arrays:
                self.give(name, each[name])
            try:
                with self.memory.accesses():
                    self.call(self.program.checked)
            except ValueError as error:
                yield f"refused with all elements that are needed: {error}"
                return
            results.append({name: self.written(name) for name, leaf in self.leaves.items() if leaf.array.written})
        for name, expected in results[0].items():
            if not np.array_equal(expected, results[1][name], equal_nan=expected.dtype.kind == "f"):
                yield f"'{name}' has other results if arrays have only what is needed"

    def written(self, name: str) -> Any:
        return np.array(self.fields[name]._ndarray)

    def one_less(self, boxes: Boxes) -> Iterator[str]:
        self.give_all(boxes)
        for (name, axis), (low, high) in self.used(boxes, is_needed=True).items():
            if name in self.drivers() or not self.is_free(name, axis):
                continue
            start, stop = boxes[name][axis]
            for side, missing, left in (("end", high, (start, high)), ("start", low, (low + 1, stop))):
                if side == "start" and name.startswith(CONNECTIVITY_PREFIX):
                    continue
                box = (*boxes[name][:axis], left, *boxes[name][axis + 1 :])
                self.give(name, box, side)
                self.ends += 1
                yield from self.refused(name, axis, missing, low, high)
                yield from self.accessed(name, axis, missing)
            self.give(name, boxes[name])

    def refused(self, name: str, axis: int, missing: int, low: int, high: int) -> Iterator[str]:
        leaf = self.leaves[name]
        if leaf.is_connectivity:
            kind, what, where = "Connectivity", ("rows", "columns")[axis], ""
        else:
            kind, what, where = "Argument", "indices", f" on axis {axis} ('{leaf.axes[axis].dim}')"
        path = leaf.path.removeprefix(CONNECTIVITY_PREFIX)
        text = f"{kind} '{path}' of program '{self.program.signature.name}' must have the {what} "
        found = self.refusal()
        # If several claims are about the axis, each has its own ends.
        ends = re.fullmatch(
            rf"{re.escape(text)}(-?\d+) to (-?\d+){re.escape(where)}, which this call uses, .*\.", found
        )
        if ends is None or not low <= int(ends[1]) <= missing <= int(ends[2]) <= high:
            yield f"'{name}' lacks {missing} on axis {axis}, but is not refused by '{text}...': '{found}'"

    def refusal(self) -> str:
        with self.memory.accesses():
            try:
                self.call(self.program.checked)
            except ValueError as error:
                return str(error)
        return ""

    def accessed(self, name: str, axis: int, missing: int) -> Iterator[str]:
        if name in self.setting.copied:
            return
        for is_true in (True, False):
            with self.choosing(is_true):
                self.give_again()
                with self.memory.accesses() as found:
                    self.call(self.program.unchecked)
            self.give_again()
            if missing in {index[axis] for index in found.get(name, ())}:
                return
        yield f"'{name}' is not accessed at {missing} on axis {axis} without the check"

    def give_again(self) -> None:
        for name, (box, side) in self.given.items():
            self.give(name, box, side)

    def one_index_less(self, boxes: Boxes) -> Iterator[str]:
        """A table has an index that an array lacks, in each corner of the part that is used."""
        direct, drivers = self.used(boxes, is_needed=True), self.drivers()
        self.give_all(boxes)
        for follow, table, rows, columns, _, _ in self.parts(boxes, is_needed=True):
            if follow.array is None or follow.axis is None or follow.array in drivers or not len(rows):
                continue
            name, axis = follow.array, follow.axis
            start, stop = boxes[name][axis]
            low, high = direct.get((name, axis), (stop, start - 1))
            for side, missing, other, left in (
                ("end", stop - 1, start, (start, stop - 1)),
                ("start", start, stop - 1, (start + 1, stop)),
            ):
                if low <= missing <= high or not self.is_free(name, axis):
                    continue
                self.fill_tables(boxes, {(name, axis): other})
                box = (*boxes[name][:axis], left, *boxes[name][axis + 1 :])
                self.give(name, box, side)
                for row in {rows[0], rows[-1]}:
                    for column in columns:
                        yield from self.one_wrong_index(boxes, table, row, column, name, axis, missing)
                self.give(name, boxes[name])

    def one_wrong_index(
        self, boxes: Boxes, table: str, row: int, column: int, name: str, axis: int, missing: int
    ) -> Iterator[str]:
        values = self.arrays[table].values
        before = values[row, column]
        values[row, column] = missing
        self.give(table, boxes[table])
        self.ends += 1
        expected = (
            f"Connectivity '{table.removeprefix(CONNECTIVITY_PREFIX)}' of program '{self.program.signature.name}' has"
            f" index {missing} in row {row}, column {column}, but argument '{self.leaves[name].path}' "
        )
        found = self.refusal()
        if not found.startswith(expected):
            yield f"'{name}' lacks the index {missing}: '{expected}', but: '{found}'"
        yield from self.accessed(name, axis, missing)
        values[row, column] = before


# --- Values -----------------------------------------------------------------------------------------------------------


def _holds(condition: Condition, symbols: Mapping[str, int]) -> bool:
    left, right = condition.left.evaluate(symbols), condition.right.evaluate(symbols)
    return {"<": left < right, "==": left == right, "!=": left != right}[condition.relation]


def _random(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "f":
        return random.uniform(0.5, 1.5, shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)
