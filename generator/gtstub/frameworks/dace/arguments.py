"""The arguments of the C functions of a compiled SDFG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dace

from gtstub.errors import SignatureError
from gtstub.stub.signature.model import Argument, ArrayArgument, CallbackArgument, SdfgSignature, StructureArgument


def check_arguments(compiled: dace.SDFG, signature: SdfgSignature, names: Mapping[str, str]) -> None:
    """
    Raises SignatureError if the arguments of a compiled SDFG differ from those of its stub. `names` are as for
    `Build.publish`.
    """
    expected = [(argument.name, _expected(argument)) for argument in signature.arguments]
    arguments, init = arguments_of(compiled)
    found = [(names.get(name, name), _found(each.dtype)) for name, each in arguments.items()]
    init = tuple(names.get(name, name) for name in init)
    if (found, init) != (expected, signature.init):
        raise SignatureError(
            f"DaCe changed the arguments of SDFG '{signature.name}' when it compiled it: expected {expected}, for"
            f" initialisation {signature.init}; found {found}, for initialisation {init}."
        )


def _expected(argument: Argument) -> str:
    match argument:
        case CallbackArgument():
            return "callback"
        case StructureArgument(members=members, copied=copied):
            pointers = [isinstance(each, ArrayArgument) and each.name not in copied for each in members]
            types = (_expected(each) + "*" * is_pointer for each, is_pointer in zip(members, pointers, strict=True))
            return f"{{{', '.join(types)}}}*"
    return argument.dtype


def _found(dtype: Any) -> str:
    """The type of an argument, or of a member of the struct that DaCe defines for a structure."""
    match dtype:
        case dace.callback():
            return "callback"
        case dace.dtypes.pointer():
            return f"{_found(dtype.base_type)}*"
        case dace.dtypes.struct():
            return f"{{{', '.join(map(_found, dtype.fields.values()))}}}"
    return str(dtype.to_string())


def arguments_of(sdfg: dace.SDFG) -> tuple[Mapping[str, dace.data.Data], tuple[str, ...]]:
    """The arguments of an SDFG, and those of `__dace_init_<name>`, in their order."""
    symbols = sdfg.used_symbols(all_symbols=False)  # which takes most of the time
    init = sorted(symbol for symbol in symbols if not symbol.startswith("__dace"))
    return sdfg.arglist(free_symbols=symbols), tuple(init)
