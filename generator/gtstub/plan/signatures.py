"""Look-up of both signatures of a program by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from gtstub.errors import PlanError
from gtstub.signature.model import (
    Argument,
    FieldType,
    ProgramSignature,
    Property,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    StaticDomain,
    Type,
)

PROPERTY_SUFFIXES: Mapping[str, Property] = {
    "_range_0": "start",
    "_range_1": "stop",
    "_size": "size",
    "_stride": "stride",
}
"""The suffixes of gt4py's names for the symbols of an axis, as in `__vn_Edge_range_0`."""


class Signatures:
    """The two signatures of one program."""

    def __init__(self, sdfg: SdfgSignature, program: ProgramSignature) -> None:
        self.sdfg = sdfg
        self.program = program
        self.arguments: Mapping[str, Argument] = {argument.name: argument for argument in sdfg.arguments}
        self.domains: Mapping[str, StaticDomain] = {domain.leaf: domain for domain in program.static_domains}
        self.statics = {argument.leaf: argument.value for argument in program.static_arguments}

    def refusal(self, what: str) -> PlanError:
        return PlanError(f"The signatures of program '{self.program.name}' contradict each other: {what}.")

    def roles(self, symbol: ScalarArgument) -> tuple[Role, ...]:
        """
        The roles of a symbol according to the array descriptors of the SDFG. After optimisation a symbol may occur in
        no descriptor; then the roles follow from gt4py's name for the symbol.
        """
        return symbol.roles or self._roles_by_name.get(symbol.name, ())

    @functools.cached_property
    def _roles_by_name(self) -> Mapping[str, tuple[Role, ...]]:
        found: dict[str, tuple[Role, ...]] = {}
        for parameter in self.program.parameters:
            for name, type_ in _fields(parameter.name, parameter.type):
                for axis, dim in enumerate(type_.dims):
                    for suffix, property_ in PROPERTY_SUFFIXES.items():
                        found.setdefault(f"__{name}_{dim.name}{suffix}", (Role(name, axis, property_),))
        return found

    @functools.cached_property
    def read(self) -> Mapping[tuple[str, int], tuple[Property, ...]]:
        """The properties that slots read from each axis, by the flattened name of the field and the axis."""
        found: dict[tuple[str, int], dict[Property, None]] = {}
        for argument in self.sdfg.arguments:
            if isinstance(argument, ScalarArgument):
                for role in self.roles(argument):
                    found.setdefault((role.array, role.axis), {})[role.property] = None
        return {place: tuple(properties) for place, properties in found.items()}


def _fields(name: str, type_: Type) -> Iterator[tuple[str, FieldType]]:
    """The fields in a parameter, with their flattened names."""
    if isinstance(type_, FieldType):
        yield name, type_
    elif not isinstance(type_, ScalarType):
        for index, element in enumerate(type_.elements):
            yield from _fields(f"{name}_{index}", element)
