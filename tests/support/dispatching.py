"""The program of hosting.py with `flag` and `n` static: one recording library and stub for each variant."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.programs import registry
from gtstub.programs.compiled import Builder, CompiledProgram, Interface, StaticScalar, product
from gtstub.stub.signature.model import ProgramSignature, StaticArgument
from tests.support.hosting import PROGRAM, SDFG, Bound, good_arguments

SIGNATURE = inspect.Signature(
    [inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter in PROGRAM.parameters]
)
STATICS = (StaticScalar("n", "n", "int32"), StaticScalar("flag", "flag", "bool"))
STATIC_SDFG = dataclasses.replace(
    SDFG, arguments=tuple(argument for argument in SDFG.arguments if argument.name not in ("n", "flag"))
)


class Variants:
    """Builds variants of `program`, whose SDFG is STATIC_SDFG, in `folder`, and counts how often each was called."""

    def __init__(self, folder: Path, toolchain: Toolchain, program: ProgramSignature = PROGRAM) -> None:
        self._folder = folder
        self._program = program
        self._toolchain = toolchain
        self._built: dict[tuple[Any, ...], Bound] = {}
        self.released = 0

    def bound(self, n: int, flag: bool) -> Bound:
        key = (int(n), bool(flag))
        if key not in self._built:
            folder = self._folder / f"{key[0]}-{key[1]}"
            folder.mkdir()
            statics = (StaticArgument("n", key[0]), StaticArgument("flag", key[1]))
            program = dataclasses.replace(self._program, static_arguments=statics)
            self._built[key] = Bound(folder, self._toolchain, STATIC_SDFG, program)
        return self._built[key]

    def called(self) -> dict[tuple[Any, ...], int]:
        """How often each variant was called since the last time this was asked."""
        counts = {key: len(bound.recorder.calls()) for key, bound in self._built.items()}
        for bound in self._built.values():
            bound.recorder.clear()
        return {key: count for key, count in counts.items() if count}

    def start(self, static: Mapping[str, Any], provider: Mapping[str, Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result((static["n"], static["flag"]))
        return done

    def load(self, artifact: tuple[Any, ...]) -> Callable[..., None]:
        return self.bound(*artifact).load()

    def release(self) -> None:
        self.released += 1

    def compile(
        self,
        choices: Mapping[str, Sequence[Any]],
        bound: Mapping[str, Any],
        providers: Sequence[Mapping[str, Any]] = (),
        *,
        overridable: bool = False,
        start: Callable[..., Future[Any]] | None = None,
        load: Callable[..., Callable[..., None]] | None = None,
    ) -> CompiledProgram:
        providers = tuple(providers) or (good_arguments()["offset_provider"],)
        interface = Interface("host", SIGNATURE, "What it does.", bound, overridable, STATICS, tuple(providers))
        program = CompiledProgram.make(
            interface, Builder(lambda _, value: value, start or self.start, load or self.load, self.release)
        )
        all_choices = {**{name: [value] for name, value in bound.items()}, **choices}
        program.add(*product("host", all_choices, lambda _, value: value))
        registry.register(program)
        return program
