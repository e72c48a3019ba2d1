"""The data model of the two signature documents; `documents.py` reads and writes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, get_args

from gtstub.errors import SignatureError
from gtstub.stub.signature.dtypes import DTYPES, SCALAR_DTYPES, DType
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.facts import Fact

Device = Literal["cpu", "cuda", "rocm"]
Access = Literal["read", "write", "readwrite", "none"]
Property = Literal["start", "stop", "size", "stride"]
PROPERTIES: tuple[Property, ...] = get_args(Property)


CONNECTIVITY_PREFIX = "gt_conn_"
"""gt4py's names of connectivities in SDFGs are this prefix and the name of the offset."""


# --- The program signature: what callers of a gt4py program pass ------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ScalarType:
    dtype: DType


@dataclasses.dataclass(frozen=True)
class Dimension:
    name: str
    kind: Literal["horizontal", "vertical", "local"]


@dataclasses.dataclass(frozen=True)
class FieldType:
    """A field; a field without dimensions is passed to the SDFG as a scalar."""

    dtype: DType
    dims: tuple[Dimension, ...]


@dataclasses.dataclass(frozen=True)
class TupleType:
    """A tuple; if it has `keys`, one for each element, callers may pass any object with these attributes instead."""

    elements: tuple[Type, ...]
    keys: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True)
class CallbackType:
    """A function of the host, which the SDFG calls. The SDFG signature has its arguments and results."""


Type = ScalarType | FieldType | TupleType | CallbackType


@dataclasses.dataclass(frozen=True)
class Parameter:
    """
    A parameter. If it has a `source`, as 'self.w' in a method, then a Python host reads this itself, and callers in
    Python do not pass it.
    """

    name: str
    type: Type
    source: str | None = None


@dataclasses.dataclass(frozen=True)
class Connectivity:
    """A neighbor table of the offset provider, of shape [`source`, `neighbor`], with indices into `codomain`."""

    name: str
    dtype: DType
    source: Dimension
    neighbor: Dimension
    codomain: Dimension
    max_neighbors: int
    has_skip_values: bool


@dataclasses.dataclass(frozen=True)
class StaticArgument:
    """A scalar that was compiled in; `leaf` is gt4py's flattened name (`x_0_1`)."""

    leaf: str
    value: bool | int | float


@dataclasses.dataclass(frozen=True)
class StaticDomain:
    """The domain that was compiled in for one field; `ranges` has (start, stop) of each axis."""

    leaf: str
    ranges: tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class ProgramSignature:
    name: str
    parameters: tuple[Parameter, ...]
    connectivities: tuple[Connectivity, ...] = ()
    static_arguments: tuple[StaticArgument, ...] = ()
    static_domains: tuple[StaticDomain, ...] = ()


# --- The SDFG signature: the C interface of the library that DaCe builds ----------------------------------------------


@dataclasses.dataclass(frozen=True)
class Axis:
    """The values that the array descriptor fixes for one axis, in elements; each call provides the others (None)."""

    size: int | None = None
    start: int | None = None
    stop: int | None = None
    stride: int | None = None

    @property
    def given(self) -> dict[Property, int]:
        """The fixed values by name."""
        values = ((name, getattr(self, name)) for name in PROPERTIES)
        return {name: value for name, value in values if value is not None}


@dataclasses.dataclass(frozen=True)
class ArrayArgument:
    name: str
    dtype: DType
    device: Device
    access: Access
    axes: tuple[Axis, ...]

    @property
    def written(self) -> bool:
        return self.access in ("write", "readwrite")

    @property
    def contract(self) -> dict[str, str | int]:
        """
        What calls check of the whole array, besides its dtype, by the names of the members of `gts_contract` in
        contract.h. A text is the name of a constant there; what is false or 0 is not checked.
        """
        return {"device": self.device, "written": self.written}


@dataclasses.dataclass(frozen=True)
class Role:
    """`property` of axis `axis` of the array argument `array`."""

    array: str
    axis: int
    property: Property


@dataclasses.dataclass(frozen=True)
class ScalarArgument:
    """A scalar or a symbol. `roles` are all occurrences of the symbol in array descriptors, arrays in ABI order."""

    name: str
    dtype: DType
    roles: tuple[Role, ...] = ()


Polynomial = Annotated[Expression, "with products"]
"""An expression that may have products of symbols."""


@dataclasses.dataclass(frozen=True)
class CallbackValue:
    """An argument or a result of a callback: an array with the sizes and strides of its axes, or, without, a scalar."""

    dtype: DType
    shape: tuple[Polynomial, ...] = ()
    strides: tuple[Polynomial, ...] = ()


@dataclasses.dataclass(frozen=True)
class CallbackArgument:
    """
    A function that the SDFG calls. A single scalar result is its return value in C; others are written through trailing
    pointers. If it `is_parallel`, several threads may call it at the same time.
    """

    name: str
    arguments: tuple[CallbackValue, ...]
    results: tuple[CallbackValue, ...]
    is_parallel: bool


@dataclasses.dataclass(frozen=True)
class StructureArgument:
    """
    A pointer to a struct of C. Its `members` are in the struct's order: an array is the pointer to its first element, a
    scalar its value, and a structure the pointer to its struct. An array that is `copied` has no axes, and its element
    is in the struct itself: a scalar that the SDFG writes, so that callers pass memory for it.
    """

    name: str
    members: tuple[Argument, ...]
    copied: tuple[str, ...]


PlainArgument = ArrayArgument | ScalarArgument | CallbackArgument
Argument = PlainArgument | StructureArgument


def values_in(arguments: Iterable[Argument]) -> Iterator[PlainArgument]:
    """The arguments, with the members of structures in place of these."""
    for each in arguments:
        if isinstance(each, StructureArgument):
            yield from values_in(each.members)
        else:
            yield each


def structures_in(arguments: Iterable[Argument]) -> Iterator[StructureArgument]:
    """The structures among the arguments, each after those in it."""
    for each in arguments:
        if isinstance(each, StructureArgument):
            yield from structures_in(each.members)
            yield each


@dataclasses.dataclass(frozen=True)
class Requirement:
    """`property` of axis `axis` of the array argument `array` must be `value`, in elements."""

    array: str
    axis: int
    property: Literal["size", "stride"]
    value: Polynomial


@dataclasses.dataclass(frozen=True)
class Shapes:
    """
    The sizes and strides of arrays that are neither constants nor single symbols, and the symbols of all descriptors
    that the SDFG does not take as arguments.
    """

    symbols: tuple[ScalarArgument, ...]
    requirements: tuple[Requirement, ...]


@dataclasses.dataclass(frozen=True)
class Workspace:
    """Transient memory of lifetime External, which the caller provides; `storage` is DaCe's name of the storage."""

    storage: str
    device: Device


INDEX_TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
"""The types of scalars in expressions."""


Relation = Literal["<", "==", "!="]


def relates(left: int, relation: Relation, right: int) -> bool:
    """Whether a relation holds between two numbers."""
    return {"<": left < right, "==": left == right, "!=": left != right}[relation]


@dataclasses.dataclass(frozen=True)
class Condition:
    """A relation between two expressions over scalar arguments."""

    left: Expression
    relation: Relation
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@dataclasses.dataclass(frozen=True)
class Use:
    """
    The elements of an axis that a program accesses: all from the least of `lowest` to the greatest of `highest`.
    Indices count from 0, the array's first element.
    """

    array: str
    axis: int
    lowest: tuple[Expression, ...]
    highest: tuple[Expression, ...]


@dataclasses.dataclass(frozen=True)
class Follow:
    """
    A table whose elements the program uses as indices: those in all rows from the least of `first` to the greatest of
    `last`, and in `columns`, after it has added `plus` to them. If it `skips` them, elements that equal -1 are not
    used. The others are indices on `axis` of `array`, or, if there is no array, of a temporary with `size` elements.
    """

    table: str
    first: tuple[Expression, ...]
    last: tuple[Expression, ...]
    columns: tuple[int, ...]
    plus: Expression
    skips: bool
    array: str | None = None
    axis: int | None = None
    size: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.first, *self.last, self.plus, *([] if self.size is None else [self.size]))


@dataclasses.dataclass(frozen=True)
class _Conditional:
    """What holds in each call in which conditions hold, and is computed from scalar arguments."""

    when: tuple[Condition, ...]

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions, those of the conditions first."""
        for condition in self.when:
            yield from (condition.left, condition.right)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all scalar arguments in the expressions."""
        return frozenset().union(*(each.symbols for each in self.expressions))


@dataclasses.dataclass(frozen=True)
class Claim(_Conditional):
    """
    What a program accesses in each call in which the conditions hold. Unless it `is_needed`, the program reads these
    elements, but its results do not depend on them, so that calls do not check them.
    """

    uses: tuple[Use, ...]
    follows: tuple[Follow, ...]
    is_needed: bool = True

    @property
    def expressions(self) -> Iterator[Expression]:
        yield from super().expressions
        for use in self.uses:
            yield from (*use.lowest, *use.highest)
        for follow in self.follows:
            yield from follow.expressions


@dataclasses.dataclass(frozen=True)
class Extent(_Conditional):
    """
    What must not be negative if the conditions hold: the size of a `temporary` on an axis, a factor of it, or how far
    what the SDFG writes to the temporary is from an end of the axis. Also how many elements of an axis of an array,
    which may be an argument, the SDFG copies as a block of memory.
    """

    temporary: str
    axis: int
    size: Expression

    @property
    def expressions(self) -> Iterator[Expression]:
        yield from super().expressions
        yield self.size


@dataclasses.dataclass(frozen=True)
class Unknown:
    """Accesses to an array of which it is not known which elements they reach, and why not."""

    array: str
    why: str
    count: int


@dataclasses.dataclass(frozen=True)
class Bounds:
    """
    The elements that a program is sure to access. `known` counts the accesses that `claims` summarise. The conditions
    of claims may contain the names of `facts`. `temporaries` are those that a call may give a negative size; None if
    there are none.
    """

    known: int
    claims: tuple[Claim, ...]
    unknown: tuple[Unknown, ...]
    facts: tuple[Fact, ...] = ()
    temporaries: tuple[Extent, ...] | None = None


@dataclasses.dataclass(frozen=True)
class SdfgSignature:
    """
    `arguments` are the arguments of `__program_<name>` after the handle, in ABI order. `init` names the arguments of
    `__dace_init_<name>` in their order, `memory_symbols` those among them that size memory kept by the handle, or
    occur in code that initialises it. `shapes` is None if all sizes and strides are constants or arguments, and
    `bounds` if they were left out.
    """

    name: str
    device: Device
    library: str
    arguments: tuple[Argument, ...]
    init: tuple[str, ...] = ()
    memory_symbols: tuple[str, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    bounds: Bounds | None = None
    shapes: Shapes | None = None

    @property
    def values(self) -> tuple[PlainArgument, ...]:
        """The arguments, with the members of structures in place of these."""
        return tuple(values_in(self.arguments))


def checked_dtype(owner: str, argument: str, name: str, *, is_scalar: bool = False) -> DType:
    """
    `name` as an element type, or as the type of a scalar. Raises SignatureError for `argument` of `owner`, a program or
    SDFG, if it is none.
    """
    allowed = SCALAR_DTYPES if is_scalar else DTYPES
    if name not in allowed:
        raise SignatureError(
            f"Argument '{argument}' of {owner} must have one of the element types {', '.join(map(repr, allowed))},"
            f" but has '{name}'."
        )
    return name
