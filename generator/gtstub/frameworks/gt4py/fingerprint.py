"""
Finds the ingredients of a program's cache key, which determine the result of its compilation, without lowering it.

gt4py compiles syntax trees of functions together with the objects that their names refer to: other operators,
dimensions, constants. This module reads the trees that gt4py lowers, not the files that they were made from, which may
have changed. The places of nodes in files do not matter, so that entries remain valid when a model is moved. Other
parts of the key have the versions of gt4py, DaCe, numpy, Python and gtstub.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from gt4py.next import common
from gt4py.next.ffront.stages import FOASTOperatorDef, PASTProgramDef
from gt4py.next.iterator import ir as itir
from gt4py.next.otf import arguments
from gt4py.next.type_system import type_specifications as ts
from gt4py.next.type_system import type_translation

from gtstub.errors import CacheError
from gtstub.frameworks.gt4py import code
from gtstub.frameworks.gt4py.describe import Reader, describe
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.util.canonical import plain
from gtstub.util.per_object import once_per_object


@dataclasses.dataclass(frozen=True)
class Reading:
    """A program's name, its ingredients of a key, and the compiled-in values by the names that users see."""

    name: str
    ingredients: dict[str, Any]
    baked: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class _Source:
    """What all variants of a program have in common: its tree and all that it uses."""

    definition: Any
    constants: dict[str, dict[str, Any]]
    sources: dict[str, str]
    scalars: dict[str, Any]


_shared: ContextVar[dict[tuple[int, frozenset[str]], tuple[Any, _Source]] | None] = ContextVar("shared", default=None)
"""By the identity of what gt4py has parsed, which is kept, and the names in its function."""


@contextlib.contextmanager
def one_reading() -> Iterator[None]:
    """
    Within the block, a program that gt4py has not parsed anew is read once for all its variants. Between two blocks, a
    constant that it uses may change.
    """
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


def read(inp: ConcreteProgramDef[Any, Any], used: frozenset[str] = frozenset()) -> Reading:
    """
    Reads a program or field operator that gt4py has parsed. `used` has the names in its function, which name the
    compiled-in values.

    Raises CacheError if it uses an object that cannot be described.
    """
    args: arguments.CompileTimeArgs = inp.args
    contexts = args.argument_descriptor_contexts
    name = _name(inp.data)
    source = _source(inp.data, used)
    static = contexts.get(arguments.StaticArg, {})
    ingredients = {
        "program": {
            "definition": source.definition,
            "constants": source.constants,
            "source": source.sources,
            "types": {"args": describe(list(args.args)), "kwargs": describe(dict(sorted(args.kwargs.items())))},
            "column_axis": describe(args.column_axis),
        },
        "static": _members(static, "value", describe),
        "static_domains": _members(contexts.get(arguments.FieldDomainDescriptor, {}), "domain", describe),
        "offset_provider": {name: _provider_element(element) for name, element in sorted(args.offset_provider.items())},
    }
    baked = {**source.scalars, **_sizes(args.offset_provider), **_members(static, "value", plain)}
    return Reading(name, ingredients, baked)


def _source(stage: Any, used: frozenset[str]) -> _Source:
    known = _shared.get()
    if known is not None and (found := known.get((id(stage), used))) is not None:
        return found[1]
    reader = Reader()
    parsed = isinstance(stage, PASTProgramDef | FOASTOperatorDef)
    definition = reader.stage(stage, used) if parsed else reader.describe(stage)
    reader.read_members()
    source = _Source(definition, reader.constants, reader.sources, reader.scalars)
    if known is not None:
        known[id(stage), used] = stage, source
    return source


def names(stage: Any) -> frozenset[str]:
    """The names in the function of a program or operator that gt4py has not parsed yet; none for other stages."""
    return code.names(stage.definition.__code__) if hasattr(stage, "definition") else frozenset()


def _name(stage: Any) -> str:
    """The name of a program at a stage of gt4py's lowering: a syntax tree, or a program of its IR."""
    match stage:
        case PASTProgramDef():
            return str(stage.past_node.id)
        case FOASTOperatorDef():
            return str(stage.foast_node.id)
        case itir.Program():
            return str(stage.id)
    raise CacheError(f"A gt4py program cannot be an object of type '{type(stage).__name__}'.")


def _members(descriptors: Mapping[str, Any], member: str, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """
    A member of each static descriptor, by parameter; within tuples None replaces values that are not static. A number
    is as `gtstub.compile()` passes it, because gt4py compiles 1.5 and `numpy.float64(1.5)` alike.
    """

    def value(descriptor: Any) -> Any:
        if isinstance(descriptor, tuple):
            elements = [value(element) for element in descriptor]
            return None if all(element is None for element in elements) else elements
        return None if descriptor is None else convert(_exact(getattr(descriptor, member)))

    members = {name: value(descriptor) for name, descriptor in sorted(descriptors.items())}
    return {name: member for name, member in members.items() if member is not None}


def _exact(value: Any) -> Any:
    """A number of Python's as numpy's scalar of the type that gt4py gives it; anything else unchanged."""
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    if type(value) not in (bool, int, float):
        return value
    type_ = type_translation.from_value(value)
    assert isinstance(type_, ts.ScalarType)
    return np.dtype(type_.kind.name.lower()).type(value)


# --- Offset providers -------------------------------------------------------------------------------------------------


@once_per_object  # because many programs use the same table
def _table(element: Any) -> tuple[str, int]:
    """
    The parts of a table that gt4py may compile in: the digest of its content, on which static domains depend, and its
    largest index, which determines the size of the codomain.
    """
    content = element.asnumpy()
    digest = hashlib.sha256(f"{content.dtype.str}{content.shape}".encode())
    digest.update(np.ascontiguousarray(content))
    return digest.hexdigest(), int(content.max(initial=-1))


def _provider_element(element: Any) -> Any:
    if not common.is_neighbor_table(element):
        return describe(element)
    content, _ = _table(element)
    return {"type": describe(element.__gt_type__()), "content": content}


def _sizes(offset_provider: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of dimensions that gt4py reads from tables."""
    sizes: dict[str, int] = {}
    for element in filter(common.is_neighbor_table, offset_provider.values()):
        type_ = element.__gt_type__()
        _, largest = _table(element)
        found = ((type_.source_dim, int(element.ndarray.shape[0])), (type_.codomain, largest + 1))
        for dimension, size in found:
            name = f"{dimension.value}.size"
            sizes[name] = max(sizes.get(name, 0), size)
    return sizes
