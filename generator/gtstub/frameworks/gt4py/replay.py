"""Replays recorded calls in gt4py itself: embedded, or on any backend."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gt4py.next import common
from gt4py.next.ffront.decorator import FieldOperator
from gt4py.next.type_system import type_specifications as ts

from gtstub.entries.toolchain.arch import arch
from gtstub.errors import GtstubError
from gtstub.frameworks.backends.choice import EMBEDDED, Tag, choose
from gtstub.frameworks.backends.tables import load_tables
from gtstub.frameworks.gt4py.argument_types import parameter_types
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.frameworks.gt4py.internals import make_connectivity, make_field
from gtstub.frameworks.resolve import offset_provider, resolve
from gtstub.tools.recorded.archive import Call, Program, Value
from gtstub.tools.recorded.compare import AnyArray
from gtstub.tools.recorded.replay import Replay, lay_out


class GtProgram:
    """A gt4py program on one backend, to be called with recorded arguments."""

    def __init__(self, name: str, tag: str, grid: str | None) -> None:
        """`name` is 'module:name'; `grid` names an object with the connectivities that the SDFG did not take."""
        program = resolve(name)
        if not hasattr(program, "with_backend"):
            found = type(program).__name__
            raise GtstubError(f"'{name}' is not a gt4py program or field operator, but of type '{found}'.")
        # The prefix that gt4py gives the program that it makes from a field operator.
        self.name = f"{'__field_operator_' if isinstance(program, FieldOperator) else ''}{program.__name__}"
        self._tag = tag
        self._types = parameter_types(program)
        self._grid = {} if grid is None else dict(offset_provider(grid))
        backend = None
        if tag != EMBEDDED:
            choice = choose(str(program.__name__), tag, arch(Tag(tag).device), load_tables())
            backend = make_chosen_backend(choice, types=self._types)
        self._call = program.with_backend(backend)

    def is_of(self, _recorded: Program) -> bool:
        """Always false, because recordings are of stubs."""
        return False

    def replay(self, replay: Replay, call: Call) -> int:
        """Replays one call; returns the number of fields that differ by more than the tolerance."""
        arrays = lay_out(replay.archive, call)
        arguments = _Arguments(call, arrays, self._types)
        provider = {**self._grid, **arguments.connectivities()}
        try:
            self._call(**arguments.values(), offset_provider=provider)
        except Exception as error:  # gt4py's errors have no common base.
            raise GtstubError(f"gt4py cannot run '{self.name}' on '{self._tag}': {str(error).rstrip('.')}.") from error
        return replay.compare(call, arrays)


class _Arguments:
    """The arguments for gt4py of one recorded call."""

    def __init__(self, call: Call, arrays: Sequence[AnyArray], types: Mapping[str, ts.TypeSpec]) -> None:
        self._leaves = {value.leaf.path: value for value in call.values}
        self._arrays = {value.leaf.path: array for value, array in zip(call.values, arrays, strict=True)}
        self._types = types
        self._ranges: dict[str, tuple[int, int]] = {}
        for value in call.values:
            if value.leaf.kind == "field":
                for dim, start, size in zip(value.leaf.dims, value.origin, value.shape, strict=True):
                    first, stop = self._ranges.get(dim, (start, start + size))
                    self._ranges[dim] = (min(first, start), max(stop, start + size))

    def values(self) -> dict[str, Any]:
        return {name: self._make(name, type_) for name, type_ in self._types.items()}

    def connectivities(self) -> dict[str, common.Connectivity]:
        return {
            path: self._connectivity(value) for path, value in self._leaves.items() if value.leaf.kind == "connectivity"
        }

    def _make(self, path: str, type_: ts.TypeSpec) -> Any:
        match type_:
            case ts.NamedCollectionType(keys=keys, types=types):
                make = pkgutil.resolve_name(type_.original_python_type)
                return make(**{key: self._make(f"{path}.{key}", one) for key, one in zip(keys, types, strict=True)})
            case ts.TupleType(types=types):
                return tuple(self._make(f"{path}[{index}]", one) for index, one in enumerate(types))
            case ts.FieldType():
                return self._field(path, type_)
            case ts.ScalarType():
                dtype = np.dtype(type_.kind.name.lower())
                return self._arrays[path][()] if path in self._arrays else dtype.type(0)
        raise GtstubError(f"Argument '{path}' is of type '{type_}', which cannot be replayed.")

    def _field(self, path: str, type_: ts.FieldType) -> common.Field:
        if path in self._arrays:
            array, origin = self._arrays[path], self._leaves[path].origin
        else:  # The SDFG did not take this field, so its content does not matter.
            ranges = [self._ranges.get(dim.value, (0, 1)) for dim in type_.dims]
            array = np.zeros([stop - start for start, stop in ranges], type_.dtype.kind.name.lower())
            origin = tuple(start for start, _ in ranges)
        return make_field(array, domain=_domain(type_.dims, origin, array.shape))

    def _connectivity(self, value: Value) -> common.Connectivity:
        assert value.leaf.codomain is not None
        source, neighbor = value.leaf.dims
        dims = (common.Dimension(source), common.Dimension(neighbor, common.DimensionKind.LOCAL))
        return make_connectivity(
            self._arrays[value.leaf.path],
            common.Dimension(value.leaf.codomain),
            domain=_domain(dims, value.origin, value.shape),
            skip_value=-1 if value.leaf.has_skip_values else None,
        )


def _domain(dims: Sequence[common.Dimension], origin: Sequence[int], shape: Sequence[int]) -> common.Domain:
    return common.domain({dim: (start, start + size) for dim, start, size in zip(dims, origin, shape, strict=True)})
