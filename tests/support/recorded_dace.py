"""DaCe programs as gtstub carries them, on libraries that record what they get in place of those that DaCe compiles."""

from __future__ import annotations

import ctypes
import functools
import linecache
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dace
import numpy as np

from gtstub.frameworks.dace.call_arguments import Arguments
from gtstub.frameworks.dace.front_end import Compiled
from gtstub.frameworks.dace.internals import Types, parse_program
from gtstub.frameworks.dace.program import StubbedProgram
from gtstub.frameworks.dace.variant import LoadedVariant, Options, build_variant, parse_variant
from gtstub.stub.signature.dtypes import NAMES
from gtstub.stub.signature.model import Argument, ArrayArgument, CallbackArgument, ScalarArgument, SdfgSignature
from tests.support.random_dace_programs import Callback, RandomDaceProgram
from tests.support.sdfg_libraries import Recorder, build_library, c_compiler, recording_source

MEMORY = 4096
"""The bytes of the memory into which a library takes the results of a callback."""


class RecordedProgram(StubbedProgram):
    """A program whose variants have recording libraries, which call each callback once."""

    folder: Path
    callbacks: tuple[Callback, ...]
    variants: list[LoadedVariant]
    recorders: list[Recorder]

    def _built(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], types: Types, call: Arguments
    ) -> LoadedVariant | Callable[..., Any]:
        sdfg = parse_program(self.dace_program, args, kwargs)
        library = self.folder / str(len(self.variants)) / f"lib{sdfg.name}.so"
        build_library(recording_library(sdfg, self.callbacks), library, [c_compiler(), "-O0"])
        compiled = Compiled(sdfg, library)
        parsed = parse_variant(self.dace_program, args, kwargs, types, call, self._options, compiled=compiled)
        variant = build_variant(parsed, types, call)
        self.variants.append(variant)
        self.recorders.append(Recorder(variant.entry.path / library.name))
        return variant

    @property
    def recorder(self) -> Recorder:
        return self.recorders[0]

    @property
    def calls(self) -> int:
        """How often an SDFG was called."""
        return sum(len(each.calls()) for each in self.recorders)

    def memory(self, number: int) -> bytes:
        """What the callback of this number has returned last."""
        library = ctypes.CDLL(str(self.variants[0].entry.path / f"lib{self.variants[0].plan.sdfg_name}.so"))
        return bytes((ctypes.c_char * MEMORY).in_dll(library, f"result_{number}"))


def recorded(example: RandomDaceProgram, folder: Path, functions: Mapping[str, Any]) -> RecordedProgram:
    """The program of an example; `functions` are the globals that its text does not define."""
    file = folder / "drawn.py"
    file.write_text(example.text, encoding="utf-8")
    linecache.checkcache(str(file))
    names: dict[str, Any] = {"__name__": "__main__", **functions}
    exec(compile(example.text, str(file), "exec", dont_inherit=True), names)
    program = RecordedProgram.make(names["prog"], Options("Release", {}, bounds=True), fallback=False)
    assert isinstance(program, RecordedProgram)
    program.folder, program.callbacks, program.variants, program.recorders = folder, example.callbacks, [], []
    return program


def opaque(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of which DaCe makes a callback."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


def recording_library(sdfg: dace.SDFG, callbacks: tuple[Callback, ...]) -> str:
    """The C text of a library with the interface that DaCe gives the SDFG."""
    arguments: list[Argument] = []
    for name, descriptor in sdfg.arglist().items():
        if isinstance(descriptor.dtype, dace.callback):
            arguments.append(CallbackArgument(name, (), (), is_parallel=False))
        elif isinstance(descriptor, dace.data.Array):
            arguments.append(ArrayArgument(name, descriptor.dtype.to_string(), "cpu", "readwrite", ()))
        else:
            arguments.append(ScalarArgument(name, descriptor.dtype.to_string()))
    init = tuple(each for each in sdfg.init_signature(for_call=True).replace(" ", "").split(",") if each)
    place = {each.name: f"x{number}" for number, each in enumerate(arguments)}
    memory = "".join(f"EXPORT char result_{i}[{MEMORY}];\n" for i in range(len(callbacks)))
    calls = "".join(
        f"    {_called(each, place, {a.name: a for a in arguments}, f'result_{number}')};\n"
        for number, each in enumerate(callbacks)
    )
    source = recording_source(SdfgSignature(sdfg.name, "cpu", "", tuple(arguments), init))
    assert source.count("    run();\n") == 1
    return source.replace("    run();\n", f"    run();\n{calls}").replace(
        "static void run(void)", f"{memory}static void run(void)"
    )


def _called(callback: Callback, place: Mapping[str, str], arguments: Mapping[str, Argument], memory: str) -> str:
    """A call of a callback in C: a number that it returns is stored in `memory`, and an array is written there."""
    types = []
    for name in callback.arguments:
        argument = arguments[name]
        assert not isinstance(argument, CallbackArgument)
        types.append(NAMES[argument.dtype].c + (" *" if isinstance(argument, ArrayArgument) else ""))
    values, returned = [place[name] for name in callback.arguments], "void"
    if callback.result is not None:
        dtype, shape = callback.result
        returned = "void" if shape else NAMES[dtype].c
        if shape:
            types.append(f"{NAMES[dtype].c} *")
            values.append(f"(void *){memory}")
    call = f"(({returned} (*)({', '.join(types) or 'void'})){place[callback.name]})({', '.join(values)})"
    return call if returned == "void" else f"*({returned} *){memory} = {call}"


def numpy_of(dtype: str) -> Any:
    return np.dtype(dtype).type
