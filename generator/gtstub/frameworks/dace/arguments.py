"""The arguments of the C functions of a compiled SDFG."""

from __future__ import annotations

from collections.abc import Mapping

import dace

from gtstub.errors import SignatureError
from gtstub.signature.model import CallbackArgument, SdfgSignature


def check_arguments(compiled: dace.SDFG, signature: SdfgSignature, names: Mapping[str, str]) -> None:
    """
    Raises SignatureError if the arguments of a compiled SDFG differ from those of its stub. `names` are as for
    `Build.publish`.
    """
    expected = [
        (argument.name, "callback" if isinstance(argument, CallbackArgument) else argument.dtype)
        for argument in signature.arguments
    ]
    arguments, init = arguments_of(compiled)
    found = [
        (names.get(name, name), "callback" if isinstance(type_, dace.callback) else type_.to_string())
        for name, type_ in ((name, descriptor.dtype) for name, descriptor in arguments.items())
    ]
    if (found, init) != (expected, signature.init):
        raise SignatureError(
            f"DaCe changed the arguments of SDFG '{signature.name}' when it compiled it: expected {expected}, for"
            f" initialisation {signature.init}; found {found}, for initialisation {init}."
        )


def arguments_of(sdfg: dace.SDFG) -> tuple[Mapping[str, dace.data.Data], tuple[str, ...]]:
    """The arguments of an SDFG, and those of `__dace_init_<name>`, in their order."""
    symbols = sdfg.used_symbols(all_symbols=False)  # which takes most of the time
    init = sorted(symbol for symbol in symbols if not symbol.startswith("__dace"))
    return sdfg.arglist(free_symbols=symbols), tuple(init)
