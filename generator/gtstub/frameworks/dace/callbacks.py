"""The functions of a host that an SDFG calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dace
from dace import data, dtypes, nodes

from gtstub.errors import SignatureError
from gtstub.signature.expressions import syntax_tree
from gtstub.signature.model import CallbackArgument, CallbackValue, checked_dtype
from gtstub.signature.polynomials import Polynomial, from_tree


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

    def sizes(values: Iterable[Any]) -> tuple[Polynomial, ...]:
        return tuple(map(size, values))

    def size(described: Any) -> Polynomial:
        found = from_tree(syntax_tree(str(described)))
        if found is None:
            raise SignatureError(f"Callback '{name}' of SDFG '{sdfg}' has an array of unknown size '{described}'.")
        return found

    return CallbackArgument(
        name, tuple(map(value, signature.input_types)), tuple(map(value, signature.return_types)), is_parallel
    )


def calls_in_parallel(sdfg: dace.SDFG) -> bool:
    """Whether several threads may call callbacks: those of a map, or of the sections of OpenMP in a state."""
    return any(each.openmp_sections for each in sdfg.all_sdfgs_recursive()) or _calls(sdfg, in_map=False)


def _calls(sdfg: dace.SDFG, *, in_map: bool) -> bool:
    callbacks = {name for name, type_ in sdfg.symbols.items() if isinstance(type_, dtypes.callback)}
    for state in sdfg.states():
        scopes = state.scope_dict()
        for node in state.nodes():
            is_inside = in_map or scopes[node] is not None
            if isinstance(node, nodes.NestedSDFG) and _calls(node.sdfg, in_map=is_inside):
                return True
            if isinstance(node, nodes.Tasklet) and is_inside and any(name in node.code.as_string for name in callbacks):
                return True
    return False
