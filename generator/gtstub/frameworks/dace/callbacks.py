"""The functions of a host that an SDFG calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import dace
from dace import data, dtypes

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.internals import type_name
from gtstub.stub.sdfg.dataflow import around
from gtstub.stub.sdfg.model import Container, Node, Sdfg, states_in
from gtstub.stub.signature.expressions import Expression, polynomial
from gtstub.stub.signature.model import CallbackArgument, CallbackValue, checked_dtype


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
        if isinstance(type_, dtypes.pointer | dtypes.stringtype):  # DaCe takes some members of structures for texts
            raise SignatureError(f"Callback '{name}' of SDFG '{sdfg}' takes or returns a structure or a text.")
        is_scalar = not isinstance(described, data.Array)
        dtype = checked_dtype(f"a callback of SDFG '{sdfg}'", name, type_name(type_), is_scalar=is_scalar)
        if is_scalar:
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


@dataclasses.dataclass(frozen=True)
class CallbackCall:
    """A tasklet that calls a callback, the maps that contain it, and the data that it takes and gives."""

    name: str
    maps: tuple[Node, ...]
    containers: tuple[Container, ...]


def calls_of(callbacks: Collection[str], sdfg: Sdfg, outer: tuple[Node, ...] = ()) -> Iterator[CallbackCall]:
    """All calls of callbacks, also those of nested SDFGs. `outer` are the maps that contain the SDFG."""
    for state in states_in(sdfg):
        for node in state.nodes.values():
            maps = (*outer, *around(state, node))
            for name in (each for each in callbacks if each in node.code):
                data = {edge.data for edge in state.edges if node.id in (edge.src, edge.dst) and edge.data}
                known = sorted(data & sdfg.containers.keys())  # members of structures are none of them
                yield CallbackCall(name, maps, tuple(sdfg.containers[each] for each in known))
            if node.sdfg is not None:
                yield from calls_of([name for name, text in node.mapping.items() if text in callbacks], node.sdfg, maps)


def calls_in_parallel(sdfg: dace.SDFG, calls: Iterable[CallbackCall]) -> bool:
    """Whether several threads may call callbacks: those of a map, or of the sections of OpenMP in a state."""
    return any(each.openmp_sections for each in sdfg.all_sdfgs_recursive()) or any(call.maps for call in calls)


def check_devices(sdfg: str, calls: Iterable[CallbackCall]) -> None:
    """Raises SignatureError if a kernel on a GPU calls a callback, or if one is given an array on a GPU."""
    for call in calls:
        if any(entry.schedule.startswith("GPU_") for entry in call.maps):
            raise SignatureError(
                f"Callback '{call.name}' of SDFG '{sdfg}' is called by a kernel, which cannot call functions of the"
                " host."
            )
        if any(each.storage == "GPU_Global" for each in call.containers):
            raise SignatureError(
                f"Callback '{call.name}' of SDFG '{sdfg}' takes an array on the GPU; copy it to the host first."
            )
