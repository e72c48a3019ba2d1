"""Makes program signatures of DaCe programs, and names the SDFG's arguments so that C and Fortran can write them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

import dace

from gtstub.frameworks.dace.readings import Reading
from gtstub.frameworks.dace.structures import is_structure, members_of
from gtstub.signature.expressions import Expression
from gtstub.signature.facts import Fact
from gtstub.signature.model import (
    CallbackType,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    ScalarType,
    SdfgSignature,
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
    that the caller passes, those that the host reads, and the results. `members` are the names of all members of each
    structure among them.
    """

    passed: tuple[str, ...]
    read: Mapping[str, Reading]
    results: tuple[str, ...]
    members: Mapping[str, tuple[str, ...]]

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
        new |= {
            name: new.get(structure, structure) + name.removeprefix(structure)
            for structure, members in self.members.items()
            for name in members
        }
        for name, wanted in new.items():
            while wanted in names.values():
                wanted += "_"
            names[name] = wanted
        return names


def program_signature(sdfg: dace.SDFG, parameters: Parameters) -> ProgramSignature:
    """The signature of the program that DaCe parsed as `sdfg`. Raises SignatureError for unsupported types."""
    names, described = parameters.names, {**sdfg.arrays, **sdfg.arglist()}

    def parameter(name: str, source: str | None = None) -> Parameter:
        return Parameter(names[name], _type(sdfg, name, described.get(name)), source)

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


def _type(sdfg: dace.SDFG, name: str, descriptor: Any) -> Type:
    if is_structure(descriptor):
        members = dict(members_of(sdfg.name, name, descriptor))
        keys = tuple(member.rpartition(".")[2] for member in members)
        return TupleType(tuple(_type(sdfg, *each) for each in members.items()), keys)
    dtype = sdfg.symbols.get(name, dace.int32) if descriptor is None else descriptor.dtype
    if isinstance(dtype, dace.callback):
        return CallbackType()
    checked = checked_dtype(f"SDFG '{sdfg.name}'", name, dtype.to_string())
    if descriptor is None or isinstance(descriptor, dace.data.Scalar):
        return ScalarType(checked)
    return FieldType(checked, tuple(Dimension(f"axis_{axis}", "local") for axis in range(len(descriptor.shape))))


def renamed(signature: SdfgSignature, names: Mapping[str, str]) -> SdfgSignature:
    """The signature of an SDFG with other names of arguments."""

    def new(value: Any, member: str = "") -> Any:
        if isinstance(value, tuple):
            return tuple(map(new, value))
        if isinstance(value, str) and member in ("name", "array", "table"):
            return names.get(value, value)
        if not dataclasses.is_dataclass(value) or isinstance(value, type | Expression | Fact):
            return value
        members = {each.name: new(getattr(value, each.name), each.name) for each in dataclasses.fields(value)}
        return dataclasses.replace(value, **members)

    changed = {member: new(getattr(signature, member)) for member in ("arguments", "shapes", "bounds")}
    return dataclasses.replace(signature, **changed)
