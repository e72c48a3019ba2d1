"""The second step of a plan finds the source of each slot of the SDFG, and the values that must agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gtstub.plan.model import (
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
    Source,
    Value,
)
from gtstub.plan.signatures import Signatures
from gtstub.signature.dtypes import INDEX, DType
from gtstub.signature.model import (
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
        self._solved: list[Requirement] = []
        self._assertions: list[Assertion] = []
        self.slots = tuple(self._slot(index, argument) for index, argument in enumerate(signatures.sdfg.arguments))
        self.symbols = tuple(self._slot(-1, symbol) for symbol in signatures.shapes.symbols)
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
        sources: list[Source] = [*([Value(self._scalars[name])] if name in self._scalars else []), *values]
        return sources or list(self._solutions(argument))

    def _solutions(self, symbol: ScalarArgument) -> Iterator[Source]:
        """The symbol, computed from the first size or stride that contains no other symbol, in program order."""
        for each in self._requirements():
            match each.value.linear:
                case (symbol.name, factor, constant):
                    if factor == 1:
                        self._solved.append(each)
                    yield AxisValue(self._fields[each.array], each.axis, each.property, constant, factor)
                    return

    def _required_shapes(self) -> Iterator[RequiredShape]:
        for each in self._requirements():
            if each not in self._solved:
                has_scalar = not each.value.symbols.isdisjoint(self._scalars)
                yield RequiredShape(self._fields[each.array], each.axis, each.property, each.value, has_scalar)

    def _requirements(self) -> list[Requirement]:
        """Those of all sizes in program order, then those of strides, which follow from sizes as a rule."""
        found = [each for each in self._signatures.shapes.requirements if each.array in self._fields]
        return sorted(found, key=lambda each: (each.property == "stride", self._fields[each.array].index, each.axis))

    def _check(self, argument: PlainArgument, sources: list[Source]) -> None:
        name, is_array = argument.name, isinstance(argument, ArrayArgument)
        if not sources:
            kind = "array" if is_array else "callback" if isinstance(argument, CallbackArgument) else "symbol"
            raise self._signatures.refusal(
                f"no argument of the program determines {kind} '{name}' of the SDFG", name if kind == "symbol" else ""
            )
        if isinstance(argument, CallbackArgument):
            return
        if name in METRICS and METRICS[name] != (argument.dtype, is_array):
            raise self._signatures.refusal(f"'{name}' is not of the type that gt4py gives its metrics")
        if any(isinstance(source, AxisValue) for source in sources) and argument.dtype not in SYMBOL_TYPES:
            raise self._signatures.refusal(
                f"symbol '{name}' has dtype '{argument.dtype}', not {' or '.join(map(repr, SYMBOL_TYPES))}"
            )
