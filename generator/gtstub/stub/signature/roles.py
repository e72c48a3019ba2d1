"""What gt4py's names of symbols say about the fields of a program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gtstub.stub.signature.model import (
    CONNECTIVITY_PREFIX,
    Dimension,
    FieldType,
    ProgramSignature,
    Property,
    Role,
    TupleType,
    Type,
)

PROPERTY_SUFFIXES: Mapping[str, Property] = {
    "_range_0": "start",
    "_range_1": "stop",
    "_size": "size",
    "_stride": "stride",
}
"""The suffixes of gt4py's names for the symbols of an axis, as in `__vn_Edge_range_0`."""


MAP_VARIABLE = re.compile(r"i_(?P<dimension>.+?)_{1,2}gtx_(?P<kind>horizontal|vertical|localdim)$")
"""The end of gt4py's name for a variable of a map: `i_Edge_gtx_horizontal`. Blocked loops have something before it."""


def fields(program: ProgramSignature) -> Iterator[tuple[str, FieldType]]:
    """The fields in the parameters of a program, with their flattened names."""
    for parameter in program.parameters:
        yield from _fields(parameter.name, parameter.type)


def _fields(name: str, type_: Type) -> Iterator[tuple[str, FieldType]]:
    if isinstance(type_, FieldType):
        yield name, type_
    elif isinstance(type_, TupleType):
        for index, element in enumerate(type_.elements):
            yield from _fields(f"{name}_{index}", element)


def dims_of_arrays(program: ProgramSignature) -> Iterator[tuple[str, tuple[Dimension, ...]]]:
    """The dimensions of each array of a program: of its fields, and of the tables of its connectivities."""
    for name, type_ in fields(program):
        yield name, type_.dims
    for each in program.connectivities:
        yield CONNECTIVITY_PREFIX + each.name, (each.source, each.neighbor)


def roles_by_name(program: ProgramSignature) -> Mapping[str, tuple[Role, ...]]:
    """The roles of all symbols that gt4py may have for the fields of a program."""
    found: dict[str, tuple[Role, ...]] = {}
    for name, type_ in fields(program):
        for axis, dim in enumerate(type_.dims):
            for suffix, property_ in PROPERTY_SUFFIXES.items():
                found.setdefault(f"__{name}_{dim.name}{suffix}", (Role(name, axis, property_),))
    return found
