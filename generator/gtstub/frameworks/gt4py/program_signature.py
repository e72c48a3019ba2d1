"""Makes program signatures, which describe the arguments of a gt4py program, from gt4py's lowered programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from gt4py.next import common
from gt4py.next.otf import arguments
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import SignatureError
from gtstub.frameworks.gt4py.internals import CompilableProgramDef, ProgramSource
from gtstub.stub.signature.model import (
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
    checked_dtype,
)


def program_signature(
    compilable: CompilableProgramDef,
    source: ProgramSource[Any],
    declared: Mapping[str, ts.TypeSpec] = MappingProxyType({}),
) -> ProgramSignature:
    """
    The signature of a lowered gt4py program. Raises SignatureError for types that no stub supports.

    It describes gt4py's canonical form of calls: all arguments are positional (`out` is the last parameter of a field
    operator), and named collections are tuples. `declared` has the types of parameters before lowering, which still
    know the keys of named collections.
    """
    name = str(source.entry_point.name)
    owner = f"program '{name}'"
    contexts = compilable.args.argument_descriptor_contexts
    return ProgramSignature(
        name=name,
        parameters=tuple(
            Parameter(parameter, _type(owner, parameter, declared.get(parameter, type_)))
            for parameter, type_ in ((str(item.name), item.type_) for item in source.entry_point.parameters)
        ),
        connectivities=tuple(
            Connectivity(
                name=offset,
                dtype=checked_dtype(owner, offset, np.dtype(type_.dtype.scalar_type).name),
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
    """The elements of nested tuples by flattened name, without those that are not static (None)."""
    if isinstance(value, tuple):
        for index, element in enumerate(value):
            yield from _leaves(f"{name}_{index}", element)
    elif value is not None:
        yield name, value


def _type(owner: str, path: str, type_: ts.TypeSpec) -> Type:
    match type_:
        case ts.ScalarType(shape=None):
            return ScalarType(checked_dtype(owner, path, type_.kind.name.lower(), is_scalar=True))
        case ts.FieldType(dtype=ts.ScalarType(shape=None, kind=kind), dims=dims):
            return FieldType(checked_dtype(owner, path, kind.name.lower()), tuple(map(_dimension, dims)))
        case ts.TupleType(types=types):
            return TupleType(tuple(_type(owner, f"{path}[{index}]", one) for index, one in enumerate(types)))
        case ts.NamedCollectionType(keys=keys, types=types):
            elements = zip(keys, types, strict=True)
            return TupleType(tuple(_type(owner, f"{path}.{key}", one) for key, one in elements), tuple(keys))
    raise SignatureError(
        f"Argument '{path}' of {owner} must be a field, a scalar or a tuple of them, but is '{type_}'."
    )


def _dimension(dimension: common.Dimension) -> Dimension:
    return Dimension(dimension.value, dimension.kind.value)
