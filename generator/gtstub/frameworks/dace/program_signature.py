"""Makes program signatures of DaCe programs, and names the SDFG's arguments so that C and Fortran can write them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import dace

from gtstub.frameworks.dace.internals import type_name
from gtstub.frameworks.dace.readings import Reading
from gtstub.stub.plan.names import is_reserved
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import (
    Argument,
    ArrayArgument,
    CallbackType,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    StructureArgument,
    TupleType,
    Type,
    checked_dtype,
)

RESULT = re.compile(r"__return(_\d+)?")
"""The names of the arrays that a program returns."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """
    The parameters of a compiled DaCe program by their names in the SDFG, in the order in which a stub takes them: those
    that the caller passes, those that the host reads, and the results. `taken` are the names of all arguments and
    symbols of the SDFG.
    """

    passed: tuple[str, ...]
    read: Mapping[str, Reading]
    results: tuple[str, ...]
    taken: frozenset[str] = frozenset()

    @property
    def names(self) -> dict[str, str]:
        """The names in the signatures by those in the SDFG."""
        names = {name: name for name in self.passed}
        # Callbacks have names of their own in DaCe, since one function may have several signatures.
        new = {
            name: re.sub(r"\W", "_", reading.source) if name.startswith("__") else name
            for name, reading in self.read.items()
        }
        new |= {name: RESULT.sub(r"result\1", name) for name in self.results}
        for name, wanted in new.items():
            wanted = f"read_{wanted}" if is_reserved(wanted) else wanted
            while wanted in names.values() or (wanted in self.taken and wanted != name):
                wanted += "_"
            names[name] = wanted
        return names


def program_signature(sdfg: dace.SDFG, signature: SdfgSignature, parameters: Parameters) -> ProgramSignature:
    """
    The signature of the program that DaCe parsed as `sdfg`, which has this `signature`. Raises SignatureError for
    unsupported types.
    """
    names, described = parameters.names, {**sdfg.arrays, **sdfg.arglist()}
    structures = {each.name: each for each in signature.arguments if isinstance(each, StructureArgument)}

    def parameter(name: str, source: str | None = None) -> Parameter:
        if name in structures:
            return Parameter(names[name], _structure(structures[name], described[name]), source)
        return Parameter(names[name], _type(sdfg, name, described), source)

    return ProgramSignature(
        name=sdfg.name,
        parameters=(
            *(parameter(name) for name in parameters.passed),
            *(parameter(name, _path(reading.source)) for name, reading in parameters.read.items()),
            *(parameter(name) for name in parameters.results),
        ),
    )


def results_of(arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments of an SDFG that are results, in the order in which the program returns them."""
    found = [name for name in arguments if RESULT.fullmatch(name)]
    return tuple(sorted(found, key=lambda name: int(name.removeprefix("__return").removeprefix("_") or 0)))


def _path(source: str) -> str | None:
    return source if re.fullmatch(r"[A-Za-z_][\w.]*", source, re.ASCII) else None


def _structure(argument: StructureArgument, descriptor: dace.data.Structure) -> TupleType:
    def of_member(key: str, member: Argument) -> Type:
        match member:
            case StructureArgument():
                return _structure(member, descriptor.members[key])
            case ArrayArgument():
                return _field(member.dtype, len(member.axes))
        assert isinstance(member, ScalarArgument)
        return _field(member.dtype, 0)  # which may be a number, or an array that another program writes

    keys = tuple(descriptor.dtype.base_type.fields)
    return TupleType(tuple(map(of_member, keys, argument.members)), keys)


def _field(dtype: DType, rank: int) -> FieldType:
    return FieldType(dtype, tuple(Dimension(f"axis_{axis}", "local") for axis in range(rank)))


def _type(sdfg: dace.SDFG, name: str, described: Mapping[str, Any]) -> Type:
    descriptor = described.get(name)
    dtype = sdfg.symbols.get(name, dace.int32) if descriptor is None else descriptor.dtype
    if isinstance(dtype, dace.callback):
        return CallbackType()
    is_scalar = descriptor is None or isinstance(descriptor, dace.data.Scalar)
    checked = checked_dtype(f"SDFG '{sdfg.name}'", name, type_name(dtype), is_scalar=is_scalar)
    if descriptor is None or is_scalar:
        return ScalarType(checked)
    return _field(checked, len(descriptor.shape))


def renamed(signature: SdfgSignature, names: Mapping[str, str]) -> SdfgSignature:
    """The signature of an SDFG with other names of arguments."""

    def new(value: Any, member: str = "") -> Any:
        if isinstance(value, tuple):
            return tuple(new(each, member) for each in value)
        if isinstance(value, str) and member in ("name", "array", "table", "copied"):
            return names.get(value, value)
        if not dataclasses.is_dataclass(value) or isinstance(value, type | Expression | Fact):
            return value
        members = {each.name: new(getattr(value, each.name), each.name) for each in dataclasses.fields(value)}
        return dataclasses.replace(value, **members)

    changed = {member: new(getattr(signature, member)) for member in ("arguments", "shapes", "bounds")}
    init = tuple(names.get(name, name) for name in signature.init)
    return dataclasses.replace(signature, init=init, **changed)
