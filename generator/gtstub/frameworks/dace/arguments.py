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
    found = [
        (names.get(name, name), "callback" if isinstance(type_, dace.callback) else type_.to_string())
        for name, type_ in ((name, descriptor.dtype) for name, descriptor in compiled.arglist().items())
    ]
    if (found, init := init_symbols(compiled)) != (expected, signature.init):
        raise SignatureError(
            f"DaCe changed the arguments of SDFG '{signature.name}' when it compiled it: expected {expected}, for"
            f" initialisation {signature.init}; found {found}, for initialisation {init}."
        )


def init_symbols(sdfg: dace.SDFG) -> tuple[str, ...]:
    """The arguments of `__dace_init_<name>` in their order."""
    return tuple(sorted(symbol for symbol in sdfg.used_symbols(all_symbols=False) if not symbol.startswith("__dace")))
