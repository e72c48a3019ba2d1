"""The accesses of an SDFG to its containers, and what its names and containers mean at a place."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from gtstub.stub.bounds import wrapping
from gtstub.stub.bounds.wrapping import SIGNED, UNSIGNED, Typed, common_type, converted
from gtstub.stub.sdfg.model import Subset, words_in
from gtstub.stub.signature import expressions
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, Product, parse, polynomial, quotient, symbol, syntax_tree
from gtstub.stub.signature.facts import fact_text
from gtstub.stub.signature.model import Condition

DATA_CONDITION = "in a branch on data"
SCALAR_CONDITION = "in a branch on scalars"
LOOP = "in a loop of unknown length"
COMPUTED = "at computed indices"
OTHER = "in a form that is not read"
"""Why it is not known which elements an access reaches."""


@dataclasses.dataclass(frozen=True)
class AnyOf:
    """The condition that in one of the cases, at least, all conditions hold."""

    cases: tuple[tuple[Condition, ...], ...]


Conditions = tuple[Condition | AnyOf, ...]
"""All of which hold. They may be about variables of loops."""


@dataclasses.dataclass(frozen=True)
class BoundedLoop:
    """
    A loop whose variable takes all values from `first` to `last`, or none if `last` is less than `first`. The rounds of
    a loop that `is_parallel` use nothing of each other.
    """

    variable: str
    first: Expression
    last: Expression
    is_parallel: bool = False


def in_steps(name: str, first: Expression, last: Expression, step: int) -> tuple[BoundedLoop, Expression]:
    """A parallel loop over numbers from the first one in steps to the last one, and the number in a round."""
    # 0 rounds, not fewer, if the last one is less: a quotient is rounded towards 0.
    end = quotient((last - first) * (1 if step > 0 else -1) + abs(step), abs(step)) - 1
    return BoundedLoop(name, Expression(), end, is_parallel=True), first + symbol(name) * step


@dataclasses.dataclass(frozen=True)
class Location:
    """
    Where the elements of a container are. `array` is an argument of the SDFG, or a temporary if `sizes` are given.
    `base` has the indices in the array of the container's first element, `axes` the array's axis for each axis of the
    container, or None for an axis of one element, and `steps` what is added to its index for the next element of the
    container. `strides` are in elements, None where they are not known. A temporary that `is_local` is in
    registers.
    """

    array: str
    base: tuple[Expression, ...]
    axes: tuple[int | None, ...]
    steps: tuple[int, ...]
    strides: tuple[Expression | None, ...]
    sizes: tuple[Expression | None, ...] | None = None
    is_local: bool = False

    def index(self, of: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The index in the array of an index in the container."""
        found = list(self.base)
        for axis, step, value in zip(self.axes, self.steps, of, strict=True):
            if axis is not None:
                found[axis] += value * step
        return tuple(found)


@dataclasses.dataclass(frozen=True)
class Lookup:
    """
    An index that is read from a table, at `row` and `column`, with `plus` added. If it `skips` them, there is no access
    where the table has -1.
    """

    table: str
    row: Expression
    column: Expression
    plus: Expression
    skips: bool


Indices = tuple[Expression, Expression] | Lookup
"""The first and the last index of an access on an axis."""


@dataclasses.dataclass(frozen=True)
class Access:
    """
    The access to the elements between the first and the last index on each axis, in all rounds of `loops`, if
    `conditions` hold. It is to an argument, or to a temporary with `sizes`. `unit` is the unit of
    computation that it is part of: what a unit writes may depend on all that it reads in the same round of its parallel
    loops, and on nothing else. A write that `overwrites` is sure to replace all these elements, whatever they were.
    """

    array: str
    loops: tuple[BoundedLoop, ...]
    conditions: Conditions
    axes: tuple[Indices, ...]
    sizes: tuple[Expression | None, ...] | None = None
    unit: int = 0
    is_write: bool = False
    overwrites: bool = False

    @property
    def variables(self) -> Mapping[str, BoundedLoop]:
        """The loops by their variables."""
        return {each.variable: each for each in self.loops}


@dataclasses.dataclass(frozen=True)
class Unread:
    """
    An access of which it is not known which elements it reaches. The array is an argument, unless it `is_temporary` or
    not known itself.
    """

    array: str
    why: str
    unit: int = 0
    is_write: bool = False
    is_temporary: bool = False


@dataclasses.dataclass(frozen=True)
class Allocation:
    """
    A temporary of which memory is allocated, or an array of which DaCe copies a block of memory, in all rounds of
    `loops`, if `conditions` hold. The size of each axis is the product of some factors, or not known.
    """

    name: str
    loops: tuple[BoundedLoop, ...]
    conditions: Conditions
    sizes: tuple[tuple[Expression, ...] | None, ...]


Rounds = tuple[Expression | None, Expression | None, int, DType]
"""The first and the last value of a variable, what is added in each round, and the variable's type in C++."""


@dataclasses.dataclass(frozen=True)
class Scope:
    """
    What holds at a place in the SDFG: the meaning of each symbol in terms of the SDFG's arguments and of variables, the
    symbols and containers that depend on elements of arrays (`data`), the location of each container, the loops around
    the place, and the conditions under which it is reached. `doubt` says why these are not known. `choices` has those
    under which a symbol that stands for a condition is true, and those under which it is false. `alike` are the symbols
    to which edges of the SDFG assign texts of one meaning, and nothing else does. `texts` are the names that depend on
    scalar arguments alone, as expressions of these, and `facts` the symbols that stand for conditions on them, by the
    text of the condition. `types` are those of C++ of names, where they are known. `allocations` collects those at all
    places. `unit` is None outside of all units of computation. `is_multicore` says whether the place is in a map of
    several threads.

    If the program `evaluates_both` sides of a choice that depends on data, as gt4py does, that choice is no condition.
    """

    symbols: Mapping[str, Expression]
    containers: Mapping[str, Location]
    data: frozenset[str] = frozenset()
    choices: Mapping[str, tuple[Conditions, Conditions]] = dataclasses.field(default_factory=dict)
    evaluates_both: bool = False
    loops: tuple[BoundedLoop, ...] = ()
    conditions: Conditions = ()
    doubt: str = ""
    alike: frozenset[str] = frozenset()
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)
    types: Mapping[str, DType] = dataclasses.field(default_factory=dict)
    allocations: list[Allocation] = dataclasses.field(default_factory=list)
    unit: int | None = None
    is_multicore: bool = False
    counter: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def value(self, text: str) -> Expression | None:
        """An expression in the arguments and in variables; None if it has another form or unknown symbols."""
        found = self.typed(text)
        return None if found is None else found.value

    def typed(self, text: str) -> Typed | None:
        """The same with its type in C++."""
        found, tree = _parsed(text)
        if found is None or tree is None or not (names := expressions.names_in(tree) - {"dace"}) <= self.symbols.keys():
            return None
        types = {self.types.get(name, SIGNED) for name in names}
        if _NEEDS_TYPES.search(text) or not types <= {*wrapping.LONG}:
            return wrapping.in_types(tree, self._variable)
        value = found.replace(self.symbols)  # Quotients are read, too.
        return Typed(value, SIGNED if SIGNED in types else "int32", self._is_natural(value))

    def meaning(self, text: str) -> Expression | str:
        """What is the same for two texts that differ in names of the same value."""
        found, tree = _parsed(text)
        if found is None or tree is None or _NEEDS_TYPES.search(text):
            return text
        known = {name: value for name, value in self.symbols.items() if self.types.get(name, SIGNED) in wrapping.LONG}
        names = expressions.names_in(tree)
        return found.replace({name: known.get(name, symbol(f"{name}#text")) for name in names})

    def _variable(self, name: str) -> Typed:
        dtype = self.types.get(name, SIGNED)
        return Typed(self.symbols[name], dtype, dtype.startswith(("u", "b")) or self._is_natural(self.symbols[name]))

    def _is_natural(self, value: Expression) -> bool:
        """Whether a value is a sum of numbers and of variables of loops that are not negative."""
        return value.constant >= 0 and all(
            factor > 0 and any(term == each.variable and self._is_natural(each.first) for each in self.loops)
            for term, factor in value.terms
        )

    def factors(self, text: str) -> tuple[Expression, ...] | None:
        """The factors of a size: symbols, or one expression; None if it has another form or unknown symbols."""
        found = polynomial(text)
        match found and (found.constant, found.terms):
            case 0, ((Product(of=atoms), factor),) if factor > 0:
                return _known(self.symbols.get(str(each)) for each in atoms)
        return _known([self.value(text)])

    def last(self, text: str) -> Typed | None:
        """The last index of a range, as of a loop that ends before the next one."""
        found, value = _parsed(text)[0], self.typed(text)
        if value is None or found is None or value.dtype not in UNSIGNED:
            return value
        end = self.typed(str(found + 1))
        return end and Typed(end.value - 1, end.dtype, is_natural=True)

    def rounds(self, start: str, last: str, step: int) -> Rounds:
        """Those of a map."""
        a, b = self.typed(start), self.last(last)
        if a is None or b is None:
            return None, None, step, SIGNED
        own = common_type(a.dtype, b.dtype)
        if own == "uint32" and not (a.is_natural and b.is_natural):
            return None, None, step, SIGNED  # DaCe counts in this type or in int64.
        dtype = own if own == "uint32" else common_type(SIGNED, own)
        if dtype == SIGNED and any(each.value.wraps for each in (a, b) if not each.is_natural):
            return None, None, step, SIGNED  # DaCe may count in the unsigned type from which an end was converted.
        return converted(a, dtype), converted(Typed(b.value + 1, b.dtype, b.is_natural), dtype) - 1, step, dtype

    def knowing(self, values: Mapping[str, Typed]) -> Scope:
        """The scope in which names have these values as well."""
        symbols = {**self.symbols, **{name: each.value for name, each in values.items()}}
        types = {**self.types, **{name: each.dtype for name, each in values.items()}}
        return dataclasses.replace(self, symbols=symbols, types=types)

    def values(self, texts: Iterable[str]) -> tuple[Expression, ...] | None:
        """Several expressions; None if one of them is not known."""
        return _known(map(self.value, texts))

    def inside(self, ranges: Mapping[str, Rounds], *, is_parallel: bool = False) -> Scope:
        """The scope in loops over variables of these names. Loops with unknown ends make it unknown what is reached."""
        scope, loops, doubt = self.without(ranges), list(self.loops), self.doubt
        symbols = dict(scope.symbols)
        for name, (first, last, step, _) in ranges.items():
            if first is None or last is None:
                doubt = doubt or LOOP
                continue
            number = f"{name}#{next(self.counter)}"
            if abs(step) == 1:
                made, value = BoundedLoop(number, *((first, last) if step > 0 else (last, first))), symbol(number)
            else:
                made, value = in_steps(number, first, last, step)
            symbols[name] = value
            loops.append(dataclasses.replace(made, is_parallel=is_parallel))
        types = {**scope.types, **{name: dtype for name, (*_, dtype) in ranges.items()}}
        return dataclasses.replace(scope, symbols=symbols, types=types, loops=tuple(loops), doubt=doubt)

    def as_unit(self) -> Scope:
        """The scope in a unit of computation: a new one, unless the place is in one already."""
        return dataclasses.replace(self, unit=next(self.counter)) if self.unit is None else self

    def when(self, conditions: Iterable[Condition | AnyOf]) -> Scope:
        """The scope in a branch."""
        return dataclasses.replace(self, conditions=(*self.conditions, *conditions))

    def in_doubt(self, why: str) -> Scope:
        """The scope of a place of which it is not known when it is reached."""
        return dataclasses.replace(self, doubt=self.doubt or why)

    def without(self, names: Iterable[str]) -> Scope:
        """The scope in which these symbols have unknown values."""
        hidden = set(names)
        symbols = {name: value for name, value in self.symbols.items() if name not in hidden}
        texts = {name: text for name, text in self.texts.items() if name not in hidden}
        types = {name: dtype for name, dtype in self.types.items() if name not in hidden}
        return dataclasses.replace(self, symbols=symbols, texts=texts, types=types)

    def fact(self, text: str) -> Expression | None:
        """The symbol for a condition on scalar arguments; None for another condition."""
        found = fact_text(text, self.texts)
        return None if found is None else symbol(self.facts.setdefault(found, f"__fact_{len(self.facts)}"))

    def depends_on_data(self, text: str) -> bool:
        """Whether a text in Python has names that depend on elements of arrays."""
        return not self.data.isdisjoint(words_in(text))

    def unread(self, name: str, why: str, *, is_write: bool) -> Unread:
        """An unknown access to a container, and why it is unknown if it is known when the place is reached."""
        location = self.containers.get(name)
        array = name if location is None else location.array
        is_temporary = location is None or location.sizes is not None
        return Unread(array, self.doubt or why, self.as_unit().unit or 0, is_write, is_temporary)

    def access(
        self,
        name: str,
        subset: Subset | None,
        *,
        is_write: bool,
        is_dynamic: bool = False,
        overwrites: bool = False,
        is_copied: bool = False,
    ) -> Access | Unread:
        """
        The access to a subset of a container, of which a dynamic one may leave out elements. A copy has as many
        elements as C++ computes, perhaps in an unsigned type.
        """
        location, ends = self.containers.get(name), None if subset is None else subset.strided
        if location is None or self.doubt or ends is None or is_dynamic:
            return self.unread(name, DATA_CONDITION if is_dynamic else OTHER, is_write=is_write)
        firsts = self.values(first for first, _, _ in ends)
        ended = [self.typed(last) if first == last else self.last(last) for first, last, _ in ends]
        lasts = _known(None if each is None else each.value for each in ended)
        if firsts is None or lasts is None or len(ends) != len(location.axes):
            is_computed = any(self.depends_on_data(text) for *each, _ in ends for text in each)
            return self.unread(name, COMPUTED if is_computed else OTHER, is_write=is_write)
        if is_copied:
            lasts = tuple(map(self._last_copied, ends, firsts, lasts))
        loops = list(self.loops)
        for axis, (first, last, step) in enumerate(ends):
            if step != 1 and first != last:
                loop, index = in_steps(f"step#{next(self.counter)}", firsts[axis], lasts[axis], step)
                firsts, lasts = ((*each[:axis], index, *each[axis + 1 :]) for each in (firsts, lasts))
                loops.append(loop)
        axes = tuple(zip(location.index(firsts), location.index(lasts), strict=True))
        unit = self.as_unit().unit or 0
        return Access(location.array, tuple(loops), self.conditions, axes, location.sizes, unit, is_write, overwrites)

    def _last_copied(self, ends: tuple[str, str, int], first: Expression, last: Expression) -> Expression:
        start, end = (_parsed(text)[0] for text in ends[:2])
        count = None if start is None or end is None else self.typed(str(end - start + 1))
        return first + count.value - 1 if count is not None and count.value.wraps else last


def _known(values: Iterable[Expression | None]) -> tuple[Expression, ...] | None:
    found = tuple(values)
    known = tuple(value for value in found if value is not None)
    return known if len(known) == len(found) else None


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Expression | None, ast.expr | None]:
    return parse(text), syntax_tree(text)


_NEEDS_TYPES = re.compile(r"int\d+\(|\d{10}")
"""What makes the type of an expression another one than that of its names: conversions, and long numbers."""
