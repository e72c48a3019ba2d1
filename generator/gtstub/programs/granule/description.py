"""
What a granule is, as data: its arrays, programs, scalars, hooks and steps.

The JSON document `granule.json` has the same members (docs/formats.md). Objects refer to each other by their place in
the lists of the description. Sizes and strides count elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gtstub.stub.signature.documents import parse, plain
from gtstub.stub.signature.dtypes import COMPLEX_DTYPES, DType
from gtstub.util.canonical import readable

Number = bool | int | float | complex

FILE = "granule.json"
SCHEMA = "gtstub/granule/1"


@dataclasses.dataclass(frozen=True)
class GranuleArray:
    """
    An array that the host passes, or that the granule keeps, with the layout that it was exported with. `is_table`: its
    elements are indices of a dimension.
    """

    name: str
    dtype: DType
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_argument: bool
    is_table: bool
    written: bool


@dataclasses.dataclass(frozen=True)
class Section:
    """
    A part of an array: axis i of it is axis `axes[i]` of the array, where its elements are `steps[i]` indices apart.
    Its first element has the index `first` in the array, from 0 on each axis.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]
    first: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ArrayValue:
    """An array, or a section of it, that begins at `origin` in gt4py's index space."""

    array: int
    origin: tuple[int, ...]
    section: Section | None = None


@dataclasses.dataclass(frozen=True)
class Constant:
    """The value of a scalar that the host cannot change."""

    dtype: DType
    value: Number


@dataclasses.dataclass(frozen=True)
class Variable:
    """A scalar of the granule."""

    scalar: int


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a program, as its user writes it. The value is None for one that was compiled in."""

    name: str
    value: ArrayValue | Constant | Variable | None = None


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a program, with all leaves of its call plan."""

    program: int
    arguments: tuple[Argument, ...]

    @property
    def arrays(self) -> tuple[ArrayValue, ...]:
        """The values that are arrays, or sections of arrays."""
        return tuple(argument.value for argument in self.arguments if isinstance(argument.value, ArrayValue))


@dataclasses.dataclass(frozen=True)
class HookCall:
    """A call of a hook, which gets arrays."""

    hook: int
    arrays: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class GranuleStep:
    """Calls in their order."""

    name: str
    positions: tuple[Call | HookCall, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of programs."""
        return tuple(each for each in self.positions if isinstance(each, Call))

    @property
    def scalars(self) -> tuple[int, ...]:
        """The scalars of the granule that programs of this step have, by their numbers."""
        values = (argument.value for call in self.calls for argument in call.arguments)
        return tuple(sorted({value.scalar for value in values if isinstance(value, Variable)}))

    @property
    def arrays(self) -> frozenset[int]:
        """The arrays of the granule that programs of this step have, by their numbers."""
        return frozenset(value.array for call in self.calls for value in call.arrays)


@dataclasses.dataclass(frozen=True)
class GranuleProgram:
    """A program, its folder in that of the granule, and the digests of its signatures."""

    name: str
    folder: str
    program_digest: str
    sdfg_digest: str

    @property
    def own_name(self) -> str:
        """A name that no other program has: that of the folder."""
        return self.folder.rpartition("/")[2]


@dataclasses.dataclass(frozen=True)
class GranuleScalar:
    """
    A scalar that the host passes to each step that uses it; `value` is that of the export. Values below `least` are
    refused.
    """

    name: str
    argument: str
    dtype: DType
    value: Number
    least: int | None = None


@dataclasses.dataclass(frozen=True)
class Description:
    """A whole granule."""

    name: str
    arrays: tuple[GranuleArray, ...]
    programs: tuple[GranuleProgram, ...]
    scalars: tuple[GranuleScalar, ...]
    hooks: tuple[str, ...]
    steps: tuple[GranuleStep, ...]

    @property
    def arguments(self) -> tuple[GranuleArray, ...]:
        """The arrays that the host passes, in their order."""
        return tuple(array for array in self.arrays if array.is_argument)

    @property
    def has_complex(self) -> bool:
        """Whether C needs the types of complex numbers, for scalars."""
        values = (each.value for step in self.steps for call in step.calls for each in call.arguments)
        constants = (value for value in values if isinstance(value, Constant))
        dtypes = (*(each.dtype for each in self.scalars), *(each.dtype for each in constants))
        return not set(COMPLEX_DTYPES).isdisjoint(dtypes)

    def has_bool(self, step: GranuleStep) -> bool:
        """Whether a step has a scalar that is a truth value, which Fortran passes in another way than C."""
        return any(self.scalars[each].dtype == "bool" for each in step.scalars)

    @property
    def has_tables(self) -> bool:
        """Whether the host passes tables, whose index base it must say."""
        return any(array.is_table for array in self.arguments)


def to_json(description: Description) -> str:
    """The document, whose text is the same for equal granules."""
    return readable({"schema": SCHEMA, **plain(description)})


def from_json(text: str | bytes, source: str) -> Description:
    """Reads a document; `source` is its file name for error messages. Raises SignatureError."""
    document = parse(text, source, "granule")
    return Description(
        name=document["name"],
        arrays=tuple(GranuleArray(**_tuples(each)) for each in document["arrays"]),
        programs=tuple(GranuleProgram(**each) for each in document["programs"]),
        scalars=tuple(GranuleScalar(**{**each, "value": _number(each["value"])}) for each in document["scalars"]),
        hooks=tuple(document["hooks"]),
        steps=tuple(GranuleStep(step["name"], tuple(map(_position, step["positions"]))) for step in document["steps"]),
    )


def _tuples(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in item.items()}


def _position(item: Mapping[str, Any]) -> Call | HookCall:
    if "hook" in item:
        return HookCall(item["hook"], tuple(item["arrays"]))
    return Call(item["program"], tuple(Argument(each["name"], _value(each.get("value"))) for each in item["arguments"]))


def _value(item: Mapping[str, Any] | None) -> ArrayValue | Constant | Variable | None:
    if item is None:
        return None
    if "scalar" in item:
        return Variable(item["scalar"])
    if "array" not in item:
        return Constant(item["dtype"], _number(item["value"]))
    section = item.get("section")
    return ArrayValue(item["array"], tuple(item["origin"]), None if section is None else Section(**_tuples(section)))


def _number(value: Any) -> Number:
    """JSON has neither infinities nor NaN, which are texts, nor complex numbers, which are lists of both parts."""
    if isinstance(value, list):
        return complex(*map(float, value))
    return float(value) if isinstance(value, str) else value
