"""Stand-in for ndsl.dsl.dace.dace_executable; see the package."""

from __future__ import annotations

import dataclasses
from typing import Any

import dace

from ndsl.quantity import State, address


@dataclasses.dataclass
class DaceExecutable:
    compiled_sdfg: dace.CompiledSDFG
    arguments: dict[str, Any] | None = None
    arguments_hash: int = 0

    @staticmethod
    def hash_expected_dsl_args(args: Any, kwargs: dict[str, Any]) -> int:
        """A hash of addresses; the names of keywords are not in it."""
        found = [*args, *kwargs.values()]
        return hash(tuple(each._hash() if isinstance(each, State) else address(each) for each in found))
