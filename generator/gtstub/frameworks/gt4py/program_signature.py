"""Program signatures: what callers of a gt4py program pass, read from what gt4py has lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from gt4py.next import common
from gt4py.next.otf import arguments, stages
from gt4py.next.otf.definitions import CompilableProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import SignatureError
from gtstub.signature.dtypes import DTYPES, DType
from gtstub.signature.model import (
    Connectivity,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    ScalarType,
    StaticArgument,
    StaticDomain,
    TupleType,
    Type,
)


def program_signature(
    compilable: CompilableProgramDef,
    source: stages.ProgramSource[Any],
    declared: Mapping[str, ts.TypeSpec] = MappingProxyType({}),
) -> ProgramSignature:
    """
    What callers of a lowered gt4py program pass.

    gt4py itself makes all arguments positional (`out` is the last parameter of a field operator) and takes named
    collections apart into tuples before it calls what a backend compiled: that canonical form is described here.
    `declared` has the types of parameters before lowering, which still know the keys of named collections.
    """
    name = str(source.entry_point.name)
    contexts = compilable.args.argument_descriptor_contexts
    return ProgramSignature(
        name=name,
        parameters=tuple(
            Parameter(parameter, _type(name, parameter, declared.get(parameter, type_)))
            for parameter, type_ in ((str(item.name), item.type_) for item in source.entry_point.parameters)
        ),
        connectivities=tuple(
            Connectivity(
                name=offset,
                dtype=_dtype(name, offset, np.dtype(type_.dtype.scalar_type).name),
                source=_dimension(type_.source_dim),
                neighbor=_dimension(type_.neighbor_dim),
                codomain=_dimension(type_.codomain),
                max_neighbors=type_.max_neighbors,
                has_skip_values=type_.has_skip_values,
            )
            for offset, type_ in sorted(compilable.args.offset_provider_type.items())
            if isinstance(type_, common.NeighborConnectivityType)
        ),
        static_arguments=tuple(
            StaticArgument(leaf, np.asarray(value).item())
            for parameter, descriptor in contexts.get(arguments.StaticArg, {}).items()
            for top, static in _leaves(parameter, descriptor)
            for leaf, value in _leaves(top, cast(arguments.StaticArg[Any], static).value)
        ),
        static_domains=tuple(
            StaticDomain(leaf, tuple((range_.start, range_.stop) for range_ in static.domain.ranges))
            for parameter, descriptor in contexts.get(arguments.FieldDomainDescriptor, {}).items()
            for leaf, static in _leaves(parameter, descriptor)
        ),
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The elements of nested tuples under their flattened names; None stands for an element that is not static."""
    if isinstance(value, tuple):
        for index, element in enumerate(value):
            yield from _leaves(f"{name}_{index}", element)
    elif value is not None:
        yield name, value


def _type(program: str, path: str, type_: ts.TypeSpec) -> Type:
    match type_:
        case ts.ScalarType(shape=None):
            return ScalarType(_dtype(program, path, type_.kind.name.lower()))
        case ts.FieldType(dtype=ts.ScalarType(shape=None) as element):
            return FieldType(
                _dtype(program, path, element.kind.name.lower()), tuple(_dimension(dim) for dim in type_.dims)
            )
        case ts.TupleType():
            return TupleType(
                tuple(_type(program, f"{path}[{index}]", element) for index, element in enumerate(type_.types))
            )
        case ts.NamedCollectionType():
            elements = zip(type_.keys, type_.types, strict=True)
            return TupleType(
                tuple(_type(program, f"{path}.{key}", element) for key, element in elements), tuple(type_.keys)
            )
    raise SignatureError(
        f"Argument '{path}' of program '{program}' must be a field, a scalar or a tuple of them, but is '{type_}'."
    )


def _dtype(program: str, path: str, dtype: str) -> DType:
    if dtype not in DTYPES:
        raise SignatureError(
            f"Argument '{path}' of program '{program}' must have one of the element types"
            f" {', '.join(repr(known) for known in DTYPES)}, but has '{dtype}'."
        )
    return dtype


def _dimension(dimension: common.Dimension) -> Dimension:
    return Dimension(dimension.value, dimension.kind.value)
