"""
The call plan of a program: the arguments of a call, and the source of each C argument of the compiled SDFG.

A plan is pure data. `planner.py` makes it from the two signatures; `stub/codegen/` writes it as C and Fortran. Its
objects refer to each other directly: the source of a slot holds the leaf that it reads. Templates and documents
distinguish the classes by their `kind`; `text` is what comments, messages and tables say of an object.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import ClassVar

from gtstub.stub.plan.names import GNU_MACROS
from gtstub.stub.signature.dtypes import COMPLEX_DTYPES, NAMES, DType
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import (
    PROPERTIES,
    ArrayArgument,
    Axis,
    CallbackValue,
    Condition,
    Device,
    Extent,
    Follow,
    Property,
    Unknown,
    Workspace,
)

METRICS_LEVEL = "gt_metrics_level"
COMPUTE_TIME = "gt_compute_time"

# --- Arguments of a call ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AxisContract:
    """
    The contract of one axis of a field. `fixed` holds the values fixed at compile time, in elements; `read` names the
    properties that the stub reads from the axis, and `wide` those among them that need not fit an int32. `used` has the
    lowest and the highest index that each call accesses, if they are the same in each call.
    """

    dim: str
    fixed: Axis
    read: tuple[Property, ...]
    used: tuple[int, int] | None = None
    wide: tuple[Property, ...] = ()

    @property
    def compared(self) -> frozenset[Property]:
        """The properties that the members above are about: if one has another value, a call checks its array again."""
        indices: tuple[Property, ...] = () if self.used is None else ("start", "size")
        return frozenset((*self.fixed.given, *self.read, *indices))

    @property
    def narrow(self) -> tuple[Property, ...]:
        """The properties that slots take as int32."""
        return tuple(name for name in self.read if name not in self.wide)

    @property
    def text(self) -> str:
        """The dimension with its fixed values: `K`, `Edge (stride 1)`."""
        fixed = ", ".join(f"{name} {value}" for name, value in self.fixed.given.items())
        return f"{self.dim} ({fixed})" if fixed else self.dim


@dataclasses.dataclass(frozen=True)
class _Leaf:
    """
    One field or scalar after tuples are flattened. `index` is its place in `CallPlan.leaves`, `name` its flattened name
    as gt4py makes it ('x_0_1'), and `path` the notation of a user ('x[0][1]', 'state.vn').
    """

    index: int
    name: str
    path: str
    dtype: DType


@dataclasses.dataclass(frozen=True)
class FieldLeaf(_Leaf):
    """
    A field of at least one dimension, or a connectivity, with its descriptor in the SDFG. The elements of a
    connectivity are indices of the dimension `codomain`, or -1 for no neighbor if `has_skip_values`.
    """

    array: ArrayArgument
    axes: tuple[AxisContract, ...]
    codomain: str | None = None
    has_skip_values: bool = False

    @property
    def is_connectivity(self) -> bool:
        return self.codomain is not None

    @property
    def kind(self) -> str:
        return "connectivity" if self.is_connectivity else "field"

    @property
    def text(self) -> str:
        """All but the device: `float64 field on [Edge (stride 1), K], written`."""
        field = f"{self.dtype} field on [{', '.join(axis.text for axis in self.axes)}]"
        members = ((name, value) for name, value in self.array.contract.items() if value and name != "device")
        more = (f", {name}" if value is True else f", {name} {value}" for name, value in members)
        return f"{'connectivity, ' if self.is_connectivity else ''}{field}{''.join(more)}"

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions of the axes, and the codomain."""
        return (*(axis.dim for axis in self.axes), *([] if self.codomain is None else [self.codomain]))


@dataclasses.dataclass(frozen=True)
class ScalarLeaf(_Leaf):
    """A scalar, or a zero-dimensional field, whose only element is passed to the SDFG."""

    is_field: bool

    @property
    def kind(self) -> str:
        return "zero_dim_field" if self.is_field else "scalar"

    @property
    def text(self) -> str:
        return f"zero-dimensional field of {self.dtype}" if self.is_field else self.dtype


@dataclasses.dataclass(frozen=True)
class StaticLeaf(_Leaf):
    """A scalar that was compiled in. It has no slot, and each call must pass exactly this value."""

    value: bool | int | float

    kind: ClassVar[str] = "static"

    @property
    def text(self) -> str:
        return f"{self.dtype}, compiled in as {self.value!r}"


@dataclasses.dataclass(frozen=True)
class CallbackLeaf:
    """A function of the host, with the arguments and results that the SDFG gives it (signature/model.py)."""

    index: int
    name: str
    path: str
    arguments: tuple[CallbackValue, ...]
    results: tuple[CallbackValue, ...]
    is_parallel: bool

    kind: ClassVar[str] = "callback"

    @property
    def returned(self) -> CallbackValue | None:
        """The scalar that the function returns in C; it writes other results through pointers."""
        return self.results[0] if len(self.results) == 1 and not self.results[0].shape else None

    @property
    def values(self) -> tuple[CallbackValue, ...]:
        """What the function takes in C: its arguments, and the results that it does not return."""
        return self.arguments if self.returned is not None else (*self.arguments, *self.results)

    @property
    def text(self) -> str:
        """`function of (float64, float64[N]) that returns int32`."""
        taken = ", ".join(map(_text, self.arguments))
        results = ", ".join(map(_text, self.results)) or "nothing"
        return f"function of ({taken}) that returns {results}"


def _text(value: CallbackValue) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]" if value.shape else value.dtype


Leaf = FieldLeaf | ScalarLeaf | StaticLeaf | CallbackLeaf


@dataclasses.dataclass(frozen=True)
class Unused:
    """A part of a parameter that is neither an argument of the SDFG nor compiled in."""

    path: str

    kind: ClassVar[str] = "unused"


@dataclasses.dataclass(frozen=True)
class Tuple:
    """A tuple that contains at least one leaf."""

    name: str
    path: str
    elements: tuple[Node, ...]

    kind: ClassVar[str] = "tuple"


@dataclasses.dataclass(frozen=True)
class Collection(Tuple):
    """A tuple for which a caller may pass any object with the attributes `keys`, one for each element."""

    index: int
    keys: tuple[str, ...]

    kind: ClassVar[str] = "collection"


Node = Leaf | Tuple | Unused
"""A parameter, or a part of one."""


# --- Sources of slots -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Data:
    """The address of a field's first element."""

    leaf: FieldLeaf

    kind: ClassVar[str] = "data"

    @property
    def text(self) -> str:
        return f"data of '{self.leaf.path}'"


@dataclasses.dataclass(frozen=True)
class AxisValue:
    """One property of one axis of a field, in elements; with `minus` subtracted, and divided by `divisor`."""

    leaf: FieldLeaf
    axis: int
    name: Property
    minus: int = 0
    divisor: int = 1

    kind: ClassVar[str] = "axis"

    def of(self, start: int, size: int, stride: int) -> int:
        """The value for an axis with these properties."""
        found = {"start": start, "stop": start + size, "size": size, "stride": stride}[self.name]
        return (found - self.minus) // self.divisor

    @property
    def text(self) -> str:
        """`stride of axis 1 of 'vn'`, `(size of axis 0 of 'b' - 1) / 2`."""
        text = f"{self.name} of axis {self.axis} of '{self.leaf.path}'"
        if self.minus:
            text += f" {'-' if self.minus > 0 else '+'} {abs(self.minus)}"
        if self.divisor == 1:
            return text
        return f"({text}) / {self.divisor}" if self.minus else f"{text} / {self.divisor}"


@dataclasses.dataclass(frozen=True)
class Solution:
    """
    A symbol, computed from several sizes or strides: `numerator / divisor`. The names in both are those of slots, of
    which solutions with a lower `order` are computed before, and those in `axes`. An error says that
    `name` of axis `axis` must be `value`; `has_scalar` is as for `RequiredShape`.
    """

    order: int
    leaf: FieldLeaf
    axis: int
    name: Property
    value: Expression
    numerator: Expression
    divisor: Expression
    axes: tuple[tuple[str, AxisValue], ...]
    has_scalar: bool

    kind: ClassVar[str] = "solution"

    @property
    def text(self) -> str:
        """`size of axis 0 of 'b' - N`, `(size of axis 0 of 'b') / (N)`."""
        axes = dict(self.axes)

        def written(value: Expression) -> str:
            return value.written(lambda atom: axes[atom].text if atom in axes else str(atom), str, " * ")

        if self.divisor == Expression(1):
            return written(self.numerator)
        return f"({written(self.numerator)}) / ({written(self.divisor)})"


@dataclasses.dataclass(frozen=True)
class Value:
    """The value of a scalar."""

    leaf: ScalarLeaf

    kind: ClassVar[str] = "value"

    @property
    def text(self) -> str:
        return f"'{self.leaf.path}'"


@dataclasses.dataclass(frozen=True)
class Metric:
    """`gt_metrics_level` or `gt_compute_time`, which gt4py adds to the SDFG and callers do not pass."""

    name: str

    kind: ClassVar[str] = "metric"

    @property
    def text(self) -> str:
        return "metrics level" if self.name == METRICS_LEVEL else "compute time"


@dataclasses.dataclass(frozen=True)
class Function:
    """The stub's function that calls a callback."""

    leaf: CallbackLeaf

    kind: ClassVar[str] = "function"

    @property
    def text(self) -> str:
        return f"function that calls '{self.leaf.path}'"


@dataclasses.dataclass(frozen=True)
class Members:
    """
    The address of a struct of C that the stub fills with these slots for each call. Of arrays that are `copied`, which
    have no axes, the struct contains the element itself; the stub copies it back after the call.
    """

    slots: tuple[Slot, ...]
    copied: tuple[Slot, ...]

    kind: ClassVar[str] = "members"

    @property
    def text(self) -> str:
        return f"struct of {', '.join(slot.name for slot in self.slots)}"


Source = Data | AxisValue | Solution | Value | Metric | Function | Members


@dataclasses.dataclass(frozen=True)
class Slot:
    """
    One argument of `__program_<name>` after the handle, or a member of a structure, with the index of that argument. A
    symbol that the SDFG does not take has the index -1.
    """

    index: int
    name: str
    dtype: DType
    is_array: bool
    source: Source

    @property
    def is_stored(self) -> bool:
        """Whether the value is in the struct of slots, because it comes from an array or a scalar."""
        return not isinstance(self.source, Metric | Function | Members)

    @property
    def is_from_array(self) -> bool:
        """Whether one array has the value, perhaps divided by a constant."""
        return isinstance(self.source, Data | AxisValue)

    @property
    def c_type(self) -> str:
        """The type of the argument in C."""
        if isinstance(self.source, Function):
            return f"gts_function_{self.source.leaf.name} *"
        if isinstance(self.source, Members):
            return f"gts_structure_{self.name} *"
        return f"{NAMES[self.dtype].c} *" if self.is_array else NAMES[self.dtype].c


@dataclasses.dataclass(frozen=True)
class Assertion:
    """Two sources of one symbol whose values must be equal: `first` defines the symbol, `later` repeats it."""

    symbol: str
    first: Source
    later: Source

    @property
    def has_scalar(self) -> bool:
        """Whether one source is a scalar, so that the assertion is checked when the scalar changes, too."""
        return isinstance(self.first, Value) or isinstance(self.later, Value)


@dataclasses.dataclass(frozen=True)
class RequiredShape:
    """
    The size or the stride of an axis must be `value`; the names in it are those of slots, and those in `axes`. `text`
    is what the program says of it.
    """

    leaf: FieldLeaf
    axis: int
    name: Property
    value: Expression
    text: str
    axes: tuple[tuple[str, AxisValue], ...]
    has_scalar: bool
    """Whether a scalar is in the value, so that it is checked when the scalar changes, too."""


# --- Bounds -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class UsedAxes:
    """Axes of which a call accesses the same indices. `index` is its place in `CallPlan.used_axes`."""

    index: int
    axes: tuple[tuple[FieldLeaf, int], ...]


@dataclasses.dataclass(frozen=True)
class UsedIndices:
    """
    The indices that a call accesses on some axes: from the least of `lowest` to the greatest of `highest`. The names in
    the expressions are those of slots.
    """

    of: UsedAxes
    lowest: tuple[Expression, ...]
    highest: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True)
class FollowedTable:
    """
    A table whose elements a call uses as indices of the field `leaf`, or, if there is none, of a temporary. The names
    in the expressions of `follow` are those of slots.
    """

    follow: Follow
    table: FieldLeaf
    leaf: FieldLeaf | None


@dataclasses.dataclass(frozen=True)
class CallBounds:
    """
    What a call accesses if all conditions of `when` hold. `extents` are sizes of temporaries, which must not be
    negative then.
    """

    when: tuple[Condition, ...]
    indices: tuple[UsedIndices, ...]
    tables: tuple[FollowedTable, ...]
    extents: tuple[Extent, ...] = ()

    @property
    def expressions(self) -> Iterator[Expression]:
        for condition in self.when:
            yield from (condition.left, condition.right)
        for each in self.indices:
            yield from (*each.lowest, *each.highest)
        for table in self.tables:
            yield from table.follow.expressions
        for extent in self.extents:
            yield extent.size

    @property
    def factors(self) -> tuple[str, ...]:
        """The names in products, which must not be too large for these."""
        return tuple(sorted(frozenset().union(*(each.in_products for each in self.expressions))))


@dataclasses.dataclass(frozen=True)
class CallPlan:
    """
    `library` is the file name of the SDFG library, and `device` is where the SDFG runs. `leaves` are all fields and
    scalars of `parameters` in program order, then the connectivities that the SDFG takes from the offset provider.
    `symbols` are values on which arrays must agree, although the SDFG does not take them. `init` are the arguments of
    `__dace_init_<name>`; `memory_symbols` are those among them that determine sizes of memory kept by the handle, or
    occur in code that initialises it. `bounds` has what differs between calls; the rest is in the contracts of axes.
    `known` counts the accesses behind both, and `unknown` the others. `unneeded` names the arrays that may lack
    elements which the SDFG reads, because no result depends on these. `facts` are conditions on scalars in the
    conditions of `bounds`.
    """

    name: str
    sdfg_name: str
    library: str
    device: Device
    parameters: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    collections: tuple[Collection, ...]
    slots: tuple[Slot, ...]
    symbols: tuple[Slot, ...]
    assertions: tuple[Assertion, ...]
    required_shapes: tuple[RequiredShape, ...]
    init: tuple[Slot, ...]
    memory_symbols: tuple[Slot, ...]
    workspaces: tuple[Workspace, ...]
    bounds: tuple[CallBounds, ...] = ()
    known: int = 0
    unknown: tuple[Unknown, ...] = ()
    unneeded: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()

    @property
    def fields(self) -> tuple[FieldLeaf, ...]:
        """The leaves that are passed as arrays, connectivities last."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, FieldLeaf))

    @property
    def connectivities(self) -> tuple[FieldLeaf, ...]:
        return tuple(leaf for leaf in self.fields if leaf.is_connectivity)

    @property
    def statics(self) -> tuple[StaticLeaf, ...]:
        """The scalars that were compiled in."""
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, StaticLeaf))

    @property
    def arguments(self) -> tuple[FieldLeaf | ScalarLeaf | CallbackLeaf, ...]:
        """The leaves that C and Fortran hosts pass: all but the static ones."""
        return tuple(leaf for leaf in self.leaves if not isinstance(leaf, StaticLeaf))

    @property
    def scalars(self) -> tuple[ScalarLeaf, ...]:
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, ScalarLeaf))

    @property
    def callbacks(self) -> tuple[CallbackLeaf, ...]:
        return tuple(leaf for leaf in self.leaves if isinstance(leaf, CallbackLeaf))

    @property
    def gnu_macros(self) -> tuple[str, ...]:
        """The names of arguments and slots that are macros in the GNU dialects of C."""
        names = {each.name for each in (*self.leaves, *self.values)}
        return tuple(name for name in GNU_MACROS if name in names)

    @property
    def has_metrics(self) -> bool:
        return any(isinstance(slot.source, Metric) for slot in self.slots)

    @property
    def followed_tables(self) -> tuple[FollowedTable, ...]:
        """Those of which all calls use the same rows come first."""
        return (*self.constant_tables, *(table for each in self.varying_bounds for table in each.tables))

    def is_followed(self, leaf: FieldLeaf) -> bool:
        """Whether an array is a table whose rows are elements of another one."""
        return leaf.is_connectivity and any(each.leaf is leaf and not each.follow.axis for each in self.followed_tables)

    @property
    def constant_tables(self) -> tuple[FollowedTable, ...]:
        """The tables of which all calls use the same rows."""
        always = (table for each in self.bounds if not each.when for table in each.tables)
        return tuple(table for table in always if all(value.is_constant for value in table.follow.expressions))

    @property
    def varying_bounds(self) -> tuple[CallBounds, ...]:
        """The bounds without the tables of which all calls use the same rows."""
        constant = self.constant_tables
        left = (
            dataclasses.replace(each, tables=tuple(table for table in each.tables if table not in constant))
            for each in self.bounds
        )
        return tuple(each for each in left if each.indices or each.tables or each.extents)

    @property
    def used_axes(self) -> tuple[UsedAxes, ...]:
        return tuple(dict.fromkeys(used.of for each in self.bounds for used in each.indices))

    @property
    def converts(self) -> bool:
        """Whether the bounds have values that C converts from one type to another."""
        values = (value for each in self.bounds for value in each.expressions)
        return bool(self.facts) or any(value.wraps for value in values)

    @property
    def bounding_slots(self) -> tuple[Slot, ...]:
        """The slots whose values are in `bounds`."""
        names = frozenset().union(*(value.symbols for each in self.bounds for value in each.expressions))
        return tuple(slot for slot in self.values if slot.name in names)

    @property
    def wide_slots(self) -> frozenset[str]:
        """The names of the slots of 64 bits."""
        return frozenset(slot.name for slot in self.bounding_slots if slot.dtype in ("int64", "uint64"))

    @property
    def structures(self) -> tuple[Slot, ...]:
        """The slots that are structures, each after those in it."""
        return tuple(slot for slot in _with_members(self.slots) if isinstance(slot.source, Members))

    @property
    def values(self) -> tuple[Slot, ...]:
        """The slots with the members of structures in place of these, and the symbols."""
        return (*(slot for slot in _with_members(self.slots) if not isinstance(slot.source, Members)), *self.symbols)

    @property
    def checked_scalars(self) -> tuple[Slot, ...]:
        """The scalars that are checked together with arrays, the largest types first."""
        names = {slot.name for slot in self.bounding_slots}.union(*(each.symbols for each in self.facts))
        names.update(each.symbol for each in self.assertions if each.has_scalar)
        names.update(*(each.value.symbols for each in self.required_shapes if each.has_scalar))
        scalars = (each for each in self.values if each.name in names and isinstance(each.source, Value))
        return tuple(sorted(scalars, key=lambda slot: (-NAMES[slot.dtype].size, NAMES[slot.dtype].c)))

    @property
    def other_slots(self) -> tuple[tuple[Slot, ...], ...]:
        """
        The slots of scalars and of symbols that are computed, grouped into runs of one type: first those that calls
        compare, so that they are one piece of memory, and then the others in order.
        """
        first = self.checked_scalars
        slots = (slot for slot in self.values if slot not in first and slot.is_stored and not slot.is_from_array)
        return tuple(tuple(group) for _, group in itertools.groupby((*first, *slots), lambda slot: slot.c_type))

    @property
    def unpassed_slots(self) -> tuple[Slot, ...]:
        """The slots that arrays have and the SDFG does not take, or only in a structure."""
        return tuple(slot for slot in self.values if slot.is_from_array and slot not in self.slots)

    @property
    def has_complex(self) -> bool:
        """Whether C needs the types of complex numbers."""
        of_callbacks = (value for leaf in self.callbacks for value in (*leaf.arguments, *leaf.results))
        dtypes = (each.dtype for part in (self.values, self.scalars, of_callbacks) for each in part)
        return not set(COMPLEX_DTYPES).isdisjoint(dtypes)

    @property
    def checked_bytes(self) -> int:
        """The size of the slots in `checked_scalars`, which have no padding between them."""
        return sum(NAMES[slot.dtype].size for slot in self.checked_scalars)

    @property
    def first_slots(self) -> tuple[Slot, ...]:
        """The slots before those of `init`, with which the SDFG's list of arguments ends; all, if it does not."""
        count = len(self.slots) - len(self.init)
        return self.slots[:count] if self.slots[count:] == self.init else self.slots

    def slots_of(self, leaf: Leaf) -> tuple[Slot, ...]:
        """The slots whose source is `leaf` alone."""
        others = Metric | Members | Solution
        return tuple(slot for slot in self.values if not isinstance(slot.source, others) and slot.source.leaf is leaf)

    def slot_named(self, leaf: Leaf) -> str | None:
        """The name of the slot that has the value of an argument, or the address of an array; None if there is none."""
        if not isinstance(leaf, FieldLeaf):
            return leaf.name
        of_data = (slot.name for slot in self.values if isinstance(slot.source, Data) and slot.source.leaf is leaf)
        return next(of_data, None)

    @property
    def solved(self) -> tuple[Slot, ...]:
        """The symbols that are solutions, in the order in which they are computed."""
        found = [(slot.source.order, slot) for slot in self.values if isinstance(slot.source, Solution)]
        return tuple(slot for _, slot in sorted(found, key=lambda each: each[0]))

    def compared(self, leaf: FieldLeaf) -> tuple[Property, ...]:
        """
        The properties of axes that distinguish two arrays at the same address: those that the contracts of axes are
        about, and the start and the size of a field of which calls need certain indices.
        """
        compared = frozenset[Property]().union(*(axis.compared for axis in leaf.axes))
        bounded = (
            *(field for used in self.used_axes for field, _ in used.axes),
            *(each.leaf for each in self.followed_tables),
        )
        if leaf.is_connectivity:
            # A table always starts at 0. The others say where the elements are that a call compares.
            compared = compared - {"start"} | {"size", "stride"}
        elif any(field is leaf for field in bounded):
            compared |= {"start", "size"}
        return tuple(name for name in PROPERTIES if name in compared)


def _with_members(slots: Iterable[Slot]) -> Iterator[Slot]:
    """The slots, and all members of structures before these."""
    for slot in slots:
        if isinstance(slot.source, Members):
            yield from _with_members(slot.source.slots)
        yield slot


def walk(node: Node) -> Iterator[Node]:
    """A node and everything in it, in program order."""
    yield node
    if isinstance(node, Tuple):
        for element in node.elements:
            yield from walk(element)
