"""What `gtstub.compile()` returns for a program, on SDFG libraries that do nothing; it needs neither gt4py nor DaCe."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import Entry
from gtstub.programs.compiled import Builder, CompiledProgram, Interface, StaticScalar
from gtstub.stub.signature.documents import program_from_json
from gtstub.stub.signature.model import ProgramSignature, ScalarType, SdfgSignature, StaticArgument
from tests.benchmarks.entry import build_entry

UNBOUND = ("u_vert", "v_vert", "vn")
"""The fields of apply_diffusion_to_vn that change from call to call."""

STATIC = ("nudgezone_diff", "start_2nd_nudge_line_idx_e", "limited_area")
"""Of a float, an integer and a bool there are two values each: eight variants."""


def other(value: Any) -> Any:
    return not value if isinstance(value, bool) else 2 * value


def build_variants(
    sdfg: SdfgSignature, program: ProgramSignature, example: Mapping[str, Any], folder: Path
) -> list[Entry]:
    """One entry for each combination of the static arguments; first that of `example`."""
    rest = dataclasses.replace(
        sdfg,
        arguments=tuple(argument for argument in sdfg.arguments if argument.name not in STATIC),
        init=tuple(name for name in sdfg.init if name not in STATIC),
        bounds=None,  # They depend on the static arguments.
    )
    entries = []
    for values in itertools.product(*((example[name], other(example[name])) for name in STATIC)):
        static = tuple(StaticArgument(name, value) for name, value in zip(STATIC, values, strict=True))
        baked = dataclasses.replace(program, static_arguments=static)
        entries.append(build_entry(rest, baked, folder, f"variant-{len(entries)}"))
    return entries


def compiled(
    entries: Sequence[Entry],
    bound: Mapping[str, Any],
    offset_provider: Mapping[str, Any],
    load: Callable[[Entry], Callable[..., None]] = Entry.load,
) -> CompiledProgram:
    """A callable over entries of one program; the static arguments stand in their program signatures."""
    programs = [_signature(entry.path) for entry in entries]
    first = programs[0]
    names = [static.leaf for static in first.static_arguments]
    types = {parameter.name: parameter.type for parameter in first.parameters}
    scalars = []
    for name in names:
        type_ = types[name]
        assert isinstance(type_, ScalarType)
        scalars.append(StaticScalar(name, name, type_.dtype))
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in types]
    found = {
        tuple(static.value for static in program.static_arguments): entry
        for program, entry in zip(programs, entries, strict=True)
    }

    def start(static: Mapping[str, Any], _: object) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(found[tuple(static[name] for name in names)])
        return done

    interface = Interface(
        first.name, inspect.Signature(parameters), None, bound, False, tuple(scalars), (offset_provider,)
    )
    program = CompiledProgram.make(interface, Builder(lambda _, value: value, start, load, lambda: None))
    program.add(*(dict(zip(names, values, strict=True)) for values in found))
    return program


def _signature(entry: Path) -> ProgramSignature:
    assert Entry(entry).manifest()
    return program_from_json((entry / "program.json").read_text(encoding="utf-8"), "program.json")
