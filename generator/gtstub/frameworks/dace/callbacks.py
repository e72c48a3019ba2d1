"""The functions of a host that an SDFG calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import dace
from dace import data, dtypes, nodes

from gtstub.errors import SignatureError
from gtstub.signature.expressions import Expression, polynomial
from gtstub.signature.model import CallbackArgument, CallbackValue, checked_dtype


def callback_argument(sdfg: str, name: str, signature: dtypes.callback, *, is_parallel: bool) -> CallbackArgument:
    """
    A callback of an SDFG. Raises SignatureError for arguments and results that are neither numbers nor arrays of known
    sizes.
    """

    def value(described: Any) -> CallbackValue:
        if described is None or not isinstance(described, data.Data | dtypes.typeclass):
            raise SignatureError(f"Callback '{name}' of SDFG '{sdfg}' has an argument or a result without a type.")
        type_ = described.dtype if isinstance(described, data.Data) else described
        if isinstance(type_, dtypes.pyobject):
            raise SignatureError(f"Callback '{name}' of SDFG '{sdfg}' takes or returns a Python object.")
        dtype = checked_dtype(f"a callback of SDFG '{sdfg}'", name, type_.to_string())
        if not isinstance(described, data.Array):
            return CallbackValue(dtype)
        return CallbackValue(dtype, sizes(described.shape), sizes(described.strides))

    def sizes(values: Iterable[Any]) -> tuple[Expression, ...]:
        return tuple(map(size, values))

    def size(described: Any) -> Expression:
        found = polynomial(str(described))
        if found is None:
            raise SignatureError(f"Callback '{name}' of SDFG '{sdfg}' has an array of unknown size '{described}'.")
        return found

    return CallbackArgument(
        name, tuple(map(value, signature.input_types)), tuple(map(value, signature.return_types)), is_parallel
    )


def calls_in_parallel(sdfg: dace.SDFG) -> bool:
    """Whether several threads may call callbacks: those of a map, or of the sections of OpenMP in a state."""
    sections = any(each.openmp_sections for each in sdfg.all_sdfgs_recursive())
    return sections or any(call.maps for call in _calls(sdfg, ()))


def check_devices(sdfg: dace.SDFG) -> None:
    """Raises SignatureError if a kernel on a GPU calls a callback, or if one is given an array on a GPU."""
    for call in _calls(sdfg, ()):
        if any(entry.map.schedule in dtypes.GPU_SCHEDULES for entry in call.maps):
            raise SignatureError(
                f"Callback '{call.name}' of SDFG '{sdfg.name}' is called by a kernel, which cannot call functions of"
                " the host."
            )
        for array in call.arrays:
            if array.storage is dtypes.StorageType.GPU_Global:
                raise SignatureError(
                    f"Callback '{call.name}' of SDFG '{sdfg.name}' takes an array on the GPU; copy it to the"
                    " host first."
                )


@dataclasses.dataclass(frozen=True)
class _Call:
    """A tasklet that calls a callback, the maps that contain it, and the data that it takes and gives."""

    name: str
    maps: tuple[nodes.MapEntry, ...]
    arrays: tuple[data.Data, ...]


def _calls(sdfg: dace.SDFG, outer: tuple[nodes.MapEntry, ...]) -> Iterator[_Call]:
    """All calls of callbacks, also those of nested SDFGs. `outer` are the maps that contain the SDFG."""
    callbacks = {name for name, type_ in sdfg.symbols.items() if isinstance(type_, dtypes.callback)}
    for state in sdfg.states():
        scopes = state.scope_dict()
        for node in state.nodes():
            maps, entry = list(outer), scopes[node]
            while entry is not None:
                maps.append(entry)
                entry = scopes[entry]
            if isinstance(node, nodes.NestedSDFG):
                yield from _calls(node.sdfg, tuple(maps))
            if isinstance(node, nodes.Tasklet):
                arrays = {edge.data.data for edge in state.all_edges(node) if edge.data.data is not None}
                for name in callbacks:
                    if name in node.code.as_string:
                        yield _Call(name, tuple(maps), tuple(sdfg.arrays[each] for each in sorted(arrays)))
