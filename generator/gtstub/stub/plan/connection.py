"""The second step of a plan finds the source of each slot of the SDFG, and the values that must agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gtstub.stub.plan.model import (
    COMPUTE_TIME,
    METRICS_LEVEL,
    Assertion,
    AxisValue,
    CallbackLeaf,
    Data,
    FieldLeaf,
    Function,
    Leaf,
    Members,
    Metric,
    RequiredShape,
    ScalarLeaf,
    Slot,
    Solution,
    Source,
    Value,
)
from gtstub.stub.plan.signatures import Signatures
from gtstub.stub.plan.solving import Quotient, solve, value_name
from gtstub.stub.signature.dtypes import INDEX, DType
from gtstub.stub.signature.expressions import symbol
from gtstub.stub.signature.model import (
    INDEX_TYPES,
    Argument,
    ArrayArgument,
    CallbackArgument,
    PlainArgument,
    Requirement,
    ScalarArgument,
    StructureArgument,
)

METRICS: dict[str, tuple[DType, bool]] = {METRICS_LEVEL: ("int32", False), COMPUTE_TIME: ("float64", True)}
"""The type of each metric that gt4py adds, and whether it is an array."""

SYMBOL_TYPES = (INDEX, "int64")


class Connection:
    """
    The slots of the SDFG with their sources, the `symbols` that it does not take, the assertions between sources of one
    symbol, and the sizes and strides that must have the value of a polynomial.
    """

    def __init__(self, signatures: Signatures, leaves: Iterable[Leaf]) -> None:
        self._signatures = signatures
        self._fields = {leaf.name: leaf for leaf in leaves if isinstance(leaf, FieldLeaf)}
        self._scalars = {leaf.name: leaf for leaf in leaves if isinstance(leaf, ScalarLeaf)}
        self._callbacks = {leaf.name: leaf for leaf in leaves if isinstance(leaf, CallbackLeaf)}
        self._required = self._requirements()
        self._solved: list[Requirement] = []
        self._assertions: list[Assertion] = []
        self._scalar_symbols = set(self._scalars)
        """The scalars, and the symbols that are computed from some of them."""
        self._open: set[str] = set()
        """The symbols without a value."""
        self._computed: Mapping[str, AxisValue | Solution] = {}
        self._computed = self._compute_symbols()
        self.slots = tuple(self._slot(index, argument) for index, argument in enumerate(signatures.sdfg.arguments))
        self.symbols = tuple(self._slot(-1, each) for each in signatures.shapes.symbols if each.name not in self._open)
        self.assertions = tuple(self._assertions)
        self.required_shapes = tuple(self._required_shapes())

    def slots_named(self, names: Iterable[str]) -> tuple[Slot, ...]:
        """The slots with the given names; raises PlanError for the name of an argument that the SDFG does not have."""
        by_name = {slot.name: slot for slot in self.slots}
        for name in names:
            if name not in by_name:
                raise self._signatures.refusal(f"__dace_init takes '{name}', which is not an argument of the SDFG")
        return tuple(by_name[name] for name in names)

    def memory_symbols(self) -> tuple[Slot, ...]:
        """The slots that the handle depends on, which the runtime compares as integers."""
        slots = self.slots_named(self._signatures.sdfg.memory_symbols)
        for slot in slots:
            if slot.dtype not in INDEX_TYPES:
                raise self._signatures.refusal(f"memory symbol '{slot.name}' has dtype '{slot.dtype}', not an integer")
        return slots

    def _slot(self, index: int, argument: Argument) -> Slot:
        if isinstance(argument, StructureArgument):
            members = tuple(self._slot(index, member) for member in argument.members)
            copied = tuple(member for member in members if member.name in argument.copied)
            return Slot(index, argument.name, "uint64", is_array=False, source=Members(members, copied))
        sources = self._sources(argument)
        self._check(argument, sources)
        first, *later = sources
        if isinstance(argument, CallbackArgument):
            return Slot(index, argument.name, "uint64", is_array=False, source=first)
        self._assertions += [Assertion(argument.name, first, source) for source in later]
        return Slot(index, argument.name, argument.dtype, isinstance(argument, ArrayArgument), first)

    def _sources(self, argument: PlainArgument) -> list[Source]:
        """
        All sources of the value of an argument: a scalar of the same name first, then axes in program order. Sizes come
        before strides: these follow from sizes as a rule, and that of an axis with fewer than two elements may be any
        number.
        """
        name = argument.name
        if isinstance(argument, CallbackArgument):
            return [Function(self._callbacks[name])] if name in self._callbacks else []
        if name in METRICS:
            return [Metric(name)]
        if isinstance(argument, ArrayArgument):
            return [Data(self._fields[name])] if name in self._fields else []
        values = [
            AxisValue(self._fields[role.array], role.axis, role.property)
            for role in self._signatures.roles(argument)
            if role.array in self._fields
        ]
        values.sort(key=lambda value: (value.name == "stride", value.leaf.index, value.axis))
        found: list[Source] = [*([Value(self._scalars[name])] if name in self._scalars else []), *values]
        return found or ([self._computed[name]] if name in self._computed else [])

    # --- Symbols that follow from sizes and strides ---

    def _compute_symbols(self) -> dict[str, AxisValue | Solution]:
        """
        The symbols that are neither scalars nor sizes or strides, but follow from these. Raises PlanError if others are
        left that the SDFG takes.
        """
        arguments = [each for each in self._signatures.sdfg.values if isinstance(each, ScalarArgument)]
        symbols = [*arguments, *self._signatures.shapes.symbols]
        unknown = [each.name for each in symbols if each.name not in METRICS and not self._sources(each)]
        found: dict[str, AxisValue | Solution] = {}
        for name in unknown:
            if (solution := self._of_one_axis(name)) is not None:
                found[name] = solution
        sizes = [each for each in self._required if each.property == "size"]
        for requirements in (sizes, self._required):  # strides follow from sizes as a rule
            for each in solve([each.value for each in requirements], set(unknown) - found.keys()):
                found[each.symbol] = self._solution(len(found), each)
        self._open = set(unknown) - found.keys()
        if missing := [each.name for each in arguments if each.name in self._open]:
            names = "', '".join(missing)
            raise self._signatures.refusal(
                f"no argument of the program determines {'symbols' if missing[1:] else 'symbol'} '{names}' of the SDFG",
                tuple(missing),
            )
        return found

    def _of_one_axis(self, name: str) -> AxisValue | None:
        """A symbol, computed from the first size or stride that contains no other symbol, in program order."""
        for each in self._required:
            match each.value.linear:
                case (symbol, factor, constant) if symbol == name:
                    if factor == 1:
                        self._solved.append(each)
                    return AxisValue(self._fields[each.array], each.axis, each.property, constant, factor)
        return None

    def _solution(self, order: int, found: Quotient) -> Solution:
        names = found.numerator.symbols | found.divisor.symbols
        if has_scalar := not names.isdisjoint(self._scalar_symbols):
            self._scalar_symbols.add(found.symbol)
        blamed = self._required[found.equation]
        leaf, axes = self._fields[blamed.array], self._axes_in(names)
        return Solution(
            order,
            leaf,
            blamed.axis,
            blamed.property,
            blamed.value,
            found.numerator,
            found.divisor,
            axes,
            has_scalar,
        )

    def _axes_in(self, names: frozenset[str]) -> tuple[tuple[str, AxisValue], ...]:
        """The axes whose values have some of these names."""
        return tuple(
            (name, AxisValue(self._fields[each.array], each.axis, each.property))
            for number, each in enumerate(self._required)
            if (name := value_name(number)) in names
        )

    def _required_shapes(self) -> Iterator[RequiredShape]:
        open_: list[tuple[int, Requirement]] = []  # with symbols without a value, which the SDFG does not take
        for number, each in enumerate(self._required):
            value = each.value
            if not value.symbols.isdisjoint(self._open):
                same = ((first, value - other.value) for first, other in open_)
                plus = next(
                    (symbol(value_name(first)) + more for first, more in same if more.symbols.isdisjoint(self._open)),
                    None,
                )
                if plus is None:
                    open_.append((number, each))
                    continue
                value = plus
            if each not in self._solved:
                yield RequiredShape(
                    self._fields[each.array],
                    each.axis,
                    each.property,
                    value,
                    str(each.value),
                    self._axes_in(value.symbols),
                    has_scalar=not value.symbols.isdisjoint(self._scalar_symbols),
                )

    def _requirements(self) -> list[Requirement]:
        """Those of all sizes in program order, then those of strides, which follow from sizes as a rule."""
        found = [each for each in self._signatures.shapes.requirements if each.array in self._fields]
        return sorted(found, key=lambda each: (each.property == "stride", self._fields[each.array].index, each.axis))

    def _check(self, argument: PlainArgument, sources: list[Source]) -> None:
        name, is_array = argument.name, isinstance(argument, ArrayArgument)
        if not sources:
            kind = "array" if is_array else "callback"
            raise self._signatures.refusal(f"no argument of the program determines {kind} '{name}' of the SDFG")
        if isinstance(argument, CallbackArgument):
            return
        if name in METRICS and METRICS[name] != (argument.dtype, is_array):
            raise self._signatures.refusal(f"'{name}' is not of the type that gt4py gives its metrics")
        if any(isinstance(source, AxisValue | Solution) for source in sources) and argument.dtype not in SYMBOL_TYPES:
            raise self._signatures.refusal(
                f"symbol '{name}' has dtype '{argument.dtype}', not {' or '.join(map(repr, SYMBOL_TYPES))}"
            )
