"""
Which accesses of an SDFG to its arguments the results depend on.

gt4py computes a temporary on one box, and may read parts of this box only: what it computes for `concat_where` in the
middle of a domain, it computes for the whole domain. So an SDFG may read elements of which it uses nothing. Here, the
boxes of each temporary that units of computation read are followed back to the rounds of the units that write it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from gtstub.stub.bounds.access import OTHER, Access, AnyOf, BoundedLoop, Conditions, Indices, Lookup, Unread
from gtstub.stub.bounds.conditions import unknown_in
from gtstub.stub.bounds.extremes import extremes
from gtstub.stub.bounds.narrowing import cases, is_about, narrowed
from gtstub.stub.signature.expressions import Expression, extremum, symbol
from gtstub.stub.signature.model import CONNECTIVITY_PREFIX, Condition

MOST_BOXES = 32
"""The most boxes of a temporary that are told apart."""


@dataclasses.dataclass(frozen=True)
class Looked:
    """The elements of a temporary that a table names, in all rounds of `loops`."""

    lookup: Lookup
    loops: tuple[BoundedLoop, ...]


@dataclasses.dataclass(frozen=True)
class Box:
    """
    Elements of a temporary: from the first to the last index of each axis, those that a table names, or all of an axis,
    if `conditions` hold. The box `is_sure` if no other condition decides whether they are used.
    """

    axes: tuple[tuple[Expression, Expression] | Looked | None, ...]
    conditions: Conditions
    is_sure: bool


@dataclasses.dataclass(frozen=True)
class Rounds:
    """
    The rounds of a unit in which the variables of its loops are from the first to the last, or have the values that a
    table gives them, if `conditions` hold. If they are `all_used`, the unit must have each of them, because nothing
    else writes what they write: gt4py copies whole arguments, so that its loops have no rounds for elements that the
    argument lacks.
    """

    limits: tuple[tuple[str, Expression, Expression], ...] = ()
    looked_up: tuple[tuple[str, Looked], ...] = ()
    conditions: Conditions = ()
    all_used: bool = False

    def of(self, access: Access) -> Access:
        """What an access of the unit reaches in these rounds."""
        loops = []
        for loop in access.loops:
            limits = [limit[1:] for limit in self.limits if limit[0] == loop.variable]
            if not limits or not self.all_used:
                limits.append((loop.first, loop.last))
            firsts, lasts = zip(*limits, strict=True)
            first = functools.reduce(functools.partial(_shortest, "max"), firsts)
            last = functools.reduce(functools.partial(_shortest, "min"), lasts)
            loops.append(dataclasses.replace(loop, first=first, last=last))
        conditions = (*access.conditions, *self.conditions)
        made = dataclasses.replace(access, loops=tuple(loops), conditions=conditions)
        for variable, looked in self.looked_up:
            made = _looked_up(made, variable, looked)
        return made


def _looked_up(access: Access, variable: str, looked: Looked) -> Access:
    """
    An access in the rounds in which a variable has values of a table. It is the access in all rounds if the variable
    occurs elsewhere than alone in indices, or if the access is to a table.
    """
    axes: list[Indices] = []
    used: list[Expression] = []
    for indices in access.axes:
        if isinstance(indices, Lookup):
            used += (indices.row, indices.column, indices.plus)
        elif _variable(indices, access.variables) == variable:
            plus = looked.lookup.plus + indices[0] - symbol(variable)
            axes.append(dataclasses.replace(looked.lookup, plus=plus))
            continue
        else:
            used += indices
        axes.append(indices)
    loops = [each for each in access.loops if each.variable != variable]
    used += (value for each in loops for value in (each.first, each.last))
    is_elsewhere = any(variable in each.symbols for each in used)
    is_elsewhere |= any(is_about(each, (variable,)) for each in access.conditions)
    if tuple(axes) == access.axes or is_elsewhere or access.array.startswith(CONNECTIVITY_PREFIX):
        return access
    loops += [each for each in looked.loops if each not in loops]
    return dataclasses.replace(access, loops=tuple(loops), axes=tuple(axes))


def _shortest(which: Literal["min", "max"], a: Expression, b: Expression) -> Expression:
    """The least or the greatest of two expressions, with the term before it that makes it shortest: x + max(a, b)."""
    terms = (Expression(0, (term,)) for term in (*a.terms, *b.terms))
    sums = (extremum(which, (a - each, b - each)) + each for each in (Expression(), *terms))
    return min(sums, key=lambda each: len(list(each.atoms())))


ALL = (Rounds(),)
"""All rounds of a unit."""


class Needs:
    """The rounds of each unit on which results depend, from all accesses of an SDFG."""

    def __init__(self, accesses: Iterable[Access | Unread]) -> None:
        accesses = itertools.chain.from_iterable(map(_in_cases, accesses))
        self._writes: collections.defaultdict[int, list[Access | Unread]] = collections.defaultdict(list)
        self._reads: collections.defaultdict[str, list[Access | Unread]] = collections.defaultdict(list)
        self._writers: collections.defaultdict[str, set[int]] = collections.defaultdict(set)
        for each in accesses:
            if each.is_write:
                self._writes[each.unit].append(each)
                self._writers[each.array].add(each.unit)
            elif _is_temporary(each):
                self._reads[each.array].append(each)
        self._rounds: dict[int, Sequence[Rounds] | None] = {}

    def rounds(self, unit: int) -> Sequence[Rounds] | None:
        """The rounds of a unit on which results depend; None if they are too many to tell."""
        if unit not in self._rounds:
            self._rounds[unit] = ALL  # of a unit whose results it uses itself, in a loop around it
            self._rounds[unit] = self._rounds_of(unit)
        return self._rounds[unit]

    def _rounds_of(self, unit: int) -> Sequence[Rounds] | None:
        found: dict[Rounds, None] = {}
        for write in self._writes[unit]:
            others = [read for read in self._reads[write.array] if read.unit != unit]
            if _is_own(write) and not others:
                continue  # It matters as much as what else the unit writes.
            if isinstance(write, Unread) or not _is_temporary(write) or any(_around(write)):
                return ALL
            if any(isinstance(read, Unread) for read in others):
                return ALL
            boxes = self.boxes(write.array, unit)
            if boxes is None:
                return None
            is_only = len(self._writers[write.array]) == 1
            found |= dict.fromkeys(_rounds_for(write, box, is_only=is_only) for box in boxes)
        if not self._writes[unit]:
            return ALL
        return tuple(found) if len(found) <= MOST_BOXES else None

    def boxes(self, temporary: str, writer: int) -> Sequence[Box] | None:
        """The boxes of a temporary that other units than its writer use; None if they are too many to tell."""
        found: dict[Box, None] = {}
        for read in self._reads[temporary]:
            if read.unit == writer or isinstance(read, Unread):
                continue  # in the same round, so that it matters as much as what the round writes
            rounds = self.rounds(read.unit)
            if rounds is None:
                return None
            found |= dict.fromkeys(_box(each.of(read)) for each in rounds)
        return tuple(found) if len(found) <= MOST_BOXES else None


def _in_cases(access: Access | Unread) -> Sequence[Access | Unread]:
    if isinstance(access, Unread):
        return [access]
    found = cases(access)
    if found is None:
        return [Unread(access.array, OTHER, access.unit, access.is_write, access.sizes is not None)]
    return found


def _is_temporary(access: Access | Unread) -> bool:
    return access.is_temporary if isinstance(access, Unread) else access.sizes is not None


def _is_own(access: Access | Unread) -> bool:
    """Whether an access is to a temporary of which all accesses are known by name: in_sdfg() numbers them."""
    return _is_temporary(access) and "#" in access.array


def _around(write: Access) -> Iterable[BoundedLoop]:
    """The loops around the unit of a write, whose rounds may use what earlier rounds have written."""
    return itertools.takewhile(lambda loop: not loop.is_parallel, write.loops)


def _box(read: Access) -> Box:
    """The elements that an access reads in all rounds."""
    read = narrowed(read) or read
    variables = read.variables
    axes = tuple(Looked(each, read.loops) if isinstance(each, Lookup) else _ends(*each, read) for each in read.axes)
    # Whether a loop has rounds is seen from its axis.
    seen = {_variable(indices, variables) for indices, ends in zip(read.axes, axes, strict=True) if ends is not None}
    ends = [Condition(loop.first, "<", loop.last + 1) for loop in read.loops if loop.variable not in seen]
    conditions = tuple(each for each in (*read.conditions, *ends) if _is_known(each, variables))
    return Box(axes, conditions, is_sure=len(conditions) == len(read.conditions) + len(ends))


def _variable(indices: Indices, variables: Collection[str]) -> str | None:
    """The variable of a loop to which only something constant is added in an index."""
    if isinstance(indices, Lookup) or indices[0] != indices[1]:
        return None
    match [name for name, factor in indices[0].terms if name in variables and factor == 1]:
        case [str(name)] if (indices[0] - symbol(name)).symbols.isdisjoint(variables):
            return name
    return None


def _is_known(condition: Condition | AnyOf, variables: Collection[str]) -> bool:
    """Whether a condition is one on arguments alone."""
    return not is_about(condition, variables) and not unknown_in((condition,))


def _ends(first: Expression, last: Expression, read: Access) -> tuple[Expression, Expression] | None:
    lowest, highest = extremes(first, last, read.loops)
    if lowest is None or highest is None or (lowest.symbols | highest.symbols) & read.variables.keys():
        return None
    return lowest, highest


def _rounds_for(write: Access, box: Box, *, is_only: bool) -> Rounds:
    """The rounds of a unit in which it may write elements of a box; `is_only` if nothing else writes them."""
    variables = write.variables
    limits: list[tuple[str, Expression, Expression]] = []
    looked_up: list[tuple[str, Looked]] = []
    conditions = list(box.conditions)
    is_sure = is_only and box.is_sure and all(_is_known(each, variables) for each in write.conditions)
    for indices, ends in zip(write.axes, box.axes, strict=True):
        if ends is None:
            continue
        name = _variable(indices, variables)
        if isinstance(ends, Looked):
            if is_sure and name is not None and variables[name].is_parallel and not isinstance(indices, Lookup):
                plus = ends.lookup.plus - indices[0] + symbol(name)
                looked_up.append((name, Looked(dataclasses.replace(ends.lookup, plus=plus), ends.loops)))
        elif isinstance(indices, Lookup):
            conditions.append(Condition(ends[0], "<", ends[1] + 1))
        elif name is not None and variables[name].is_parallel:
            start = indices[0] - symbol(name)
            limits.append((name, ends[0] - start, ends[1] - start))
        elif variables.keys().isdisjoint(indices[0].symbols | indices[1].symbols):
            conditions += [Condition(ends[0], "<", indices[1] + 1), Condition(indices[0], "<", ends[1] + 1)]
        else:
            conditions.append(Condition(ends[0], "<", ends[1] + 1))
    return Rounds(tuple(limits), tuple(looked_up), tuple(conditions), all_used=is_sure)
