"""Builds the variants of DaCe programs: for each set of types that calls pass, a program that was compiled for them."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dace
from dace.frontend.python.parser import DaceProgram

from gtstub import settings
from gtstub._host import Overload, Program
from gtstub.entries.building.progress import builds
from gtstub.entries.building.templates import compiled_templates
from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.lookup import Request, make_request
from gtstub.entries.cache.manifest import BuildStage
from gtstub.entries.toolchain import cpu
from gtstub.entries.toolchain.arch import toolkit
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.build import Build, with_gpu_arch
from gtstub.frameworks.dace.call_arguments import RESULTS, Arguments
from gtstub.frameworks.dace.changes import Change, Watch, change_of
from gtstub.frameworks.dace.closures import Closure, Identical, closure_of
from gtstub.frameworks.dace.conversions import Conversion
from gtstub.frameworks.dace.front_end import Compiled, FrontEnd
from gtstub.frameworks.dace.internals import Types, number_types, parse_program, refresh, type_name, validate
from gtstub.frameworks.dace.program_signature import Parameters, program_signature, renamed, results_of
from gtstub.frameworks.dace.readings import Passed, Reading
from gtstub.frameworks.dace.recording import Recorder, recording
from gtstub.frameworks.dace.results import allocator
from gtstub.frameworks.dace.saved import assignments_of
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.dace.structures import with_members
from gtstub.frameworks.dace.values import copy_of
from gtstub.frameworks.dace.words import words_of_dace
from gtstub.frameworks.sources import check_source
from gtstub.frameworks.versions import dace_versions
from gtstub.stub.codegen.stub import Stub, make_stub
from gtstub.stub.plan.model import CallPlan, FieldLeaf
from gtstub.stub.signature.model import CallbackArgument, Device, ProgramSignature, SdfgSignature


@dataclasses.dataclass(frozen=True)
class Options:
    """How the variants of a program are built; the arguments of `gtstub.program`."""

    build_type: str
    dace_config: Mapping[str, Any]
    bounds: bool

    def build(self, device: Device) -> Build:
        return Build(device, device, self.build_type, with_gpu_arch(device, self.dace_config))


@dataclasses.dataclass(frozen=True)
class LoadedVariant:
    """
    A compiled program. `arrays` are the descriptors of its arguments and results, and by their paths those of members
    of structures. `constants` are the compile-time arguments of the call that it was compiled for, and `exact` the
    types of those numbers for whose types it was compiled, because their parameters have none.
    """

    program: Program
    plan: CallPlan
    arrays: Mapping[str, dace.data.Array]
    parameters: Parameters
    closure: Closure
    constants: dict[str, Any]
    exact: Mapping[str, tuple[type, ...]]
    entry: Entry
    front_end: FrontEnd
    _overloads: dict[tuple[Any, ...], Overload] = dataclasses.field(init=False, default_factory=dict)

    def change(self, call: Arguments) -> Change | None:
        """What differs from what was compiled in that the call finds; None if it can use the variant."""
        return change_of(self.closure, call.by_name)

    def overload(self, call: Arguments, advice: str = "", *, recompiles: bool = False) -> Overload:
        """
        How calls like `call` call the program; the same object for calls of the same form. `advice` says what to do if
        what was compiled in has changed: the method clear() by default. If the program `recompiles`, calls do it.
        """
        if RESULTS in call.places and not self.parameters.results:
            raise TypeError(f"Program '{self.plan.name}' returns nothing, so that it takes no argument 'out'.")
        given = call.by_name
        steps = {name: self.front_end.steps(given[name]) for name in self.parameters.passed}
        form = len(call.args), tuple(call.kwargs), tuple(steps.values()), advice, recompiles
        if form not in self._overloads:
            self._overloads[form] = self._make_overload(call, given, steps, advice, recompiles)
        return self._overloads[form]

    def _make_overload(
        self,
        call: Arguments,
        given: Mapping[str, Any],
        steps: Mapping[str, tuple[str, ...]],
        advice: str,
        recompiles: bool,
    ) -> Overload:
        held = {name: Reading(Passed(name), found, name) for name, found in steps.items() if found}
        readings = {**self.parameters.read, **held}
        number = {name: number for number, name in enumerate(readings)}
        passed = [-1 - number[name] if name in held else call.places[name] for name in self.parameters.passed]
        results = self.parameters.results
        order = (*self.parameters.passed, *self.parameters.read)
        allocate = allocator(self.plan, order, self.arrays, results) if results else None
        nones: dict[str, Any] = {
            name: None for name in given.keys() - set(self.parameters.passed) if given[name] is None
        }
        constants = [self._constant(name, value) for name, value in (self.constants | nones).items()]
        plain = [name for name in self.parameters.passed if name not in held]
        arrays = {leaf.path: leaf.array for leaf in self.plan.leaves if isinstance(leaf, FieldLeaf)}
        converted = {call.places[name]: arrays[name] for name in plain if name in arrays}
        equal = (
            (*reading.plain(call.places), value.value, IDENTICAL)
            if isinstance(value, Identical)
            else (*reading.plain(call.places), value)
            for reading, value in (*constants, *self.closure.constants)
        )
        shared = (
            (*reading.plain(call.places), None, number[name]) for reading, name in self.closure.shared if name in number
        )
        return Overload(
            self.program,
            places=(*passed, *(-1 - number[name] for name in self.parameters.read)),
            readings=tuple(
                (*reading.plain(call.places), name in self.closure.distinct) for name, reading in readings.items()
            ),
            constants=(*equal, *shared),
            results=len(results),
            allocate=allocate,
            out=call.places.get(RESULTS, -1) if results else -1,
            single=results == (RESULTS,),
            exact=tuple((call.places[name], types, name) for name, types in self.exact.items()),
            convert=Conversion(self.plan.name, converted) if converted else None,
            recompiles=recompiles,
            **({"advice": advice} if advice else {}),
        )

    def _constant(self, name: str, value: Any) -> tuple[Reading, Any]:
        if self.front_end.is_read(value):
            return Reading(Passed(name), ("__class__",), f"type({name})"), type(value)
        return Reading(Passed(name), (), name), value


DACE = FrontEnd()

IDENTICAL = -2
"""As the host is told that an object must be the very one that was compiled in."""


@dataclasses.dataclass(frozen=True)
class ParsedVariant:
    """
    A variant before its build: the SDFG and its JSON form, what calls need besides, both signatures, the entry that it
    needs, the library that was compiled already, whether DaCe validates the SDFG, and the stages so far.
    """

    sdfg: dace.SDFG
    raw: Mapping[str, Any]
    parameters: Parameters
    closure: Closure
    signature: ProgramSignature
    sdfg_signature: SdfgSignature
    stub: Stub
    build: Build
    request: Request
    library: Path | None
    is_validated: bool
    measured: tuple[BuildStage, ...]

    def entry(self) -> Entry:
        """Finds the entry, or builds it."""
        if (found := self.request.find()) is not None:
            return found
        library = None if settings.build_checks() else self.library

        def publish() -> Entry:
            if self.library is None and self.is_validated:
                validate(self.sdfg)
            return self.build.publish(
                self.request,
                self.sdfg,
                self.stub,
                self.signature,
                self.sdfg_signature,
                self.raw,
                self.parameters.names,
                library,
                measured=self.measured,
            )

        with builds.building(self.request.key, self.request.label), self.build.context():
            return build_once(self.request.cache, self.request.key, publish)


def parse_variant(
    program: DaceProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    types: Types,
    call: Arguments,
    options: Options,
    front_end: FrontEnd = DACE,
    compiled: Compiled | None = None,
) -> ParsedVariant:
    """
    Parses a program, unless it was `compiled` already. `args` and `kwargs` are the arguments of the `call` without
    those that are None by default.

    Raises SignatureError and PlanError for what no stub can carry, SourceError if a file was edited after its import,
    TypeError for unknown names of arguments, and the errors of DaCe.
    """
    begin = time.time()
    with _recording(program, front_end) as recorder:
        if compiled is None:
            with options.build("cpu").context():
                sdfg = parse_program(program, args, kwargs)
        else:  # by another package, which has parsed it, too
            sdfg = compiled.sdfg
            program.closure_resolver(dict(types.values), set(types.given))
    parsing = BuildStage.since(begin, "parsing")
    begin = time.time()
    given = call.by_name
    _check_names(program, sdfg, given)
    _check_nones(program, types, given)
    closure = closure_of(
        program,
        {name: given[name] for name in types.values if name in types.given and name in given},
        _called(program, sdfg),
        recorder,
        front_end,
    )
    raw = sdfg.to_json()
    with words_of_dace(sdfg.name, closure.arrays):
        described = sdfg_signature(
            sdfg, raw, bounds=options.bounds and settings.bounds(), has_domains=False, passed=given
        )
        parameters = _parameters(sdfg, described, types, given, closure)
        signature = program_signature(sdfg, described, parameters)
        made = renamed(described, parameters.names)
        stub = make_stub(made, signature, compiled=compiled_templates())
    measured = (parsing, BuildStage.since(begin, "bindings"))
    build = options.build(made.device)
    baked = {
        reading.source: value for reading, value in closure.constants if isinstance(value, bool | int | float | complex)
    }
    ingredients: dict[str, Any] = {
        "sdfg": hashlib.sha256(json.dumps([_plain(raw), assignments_of(sdfg)], sort_keys=True).encode()).hexdigest(),
        "stub": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in stub.files.items()},
        "static": {name: repr(value) for name, value in sorted(baked.items())},
        "backend": {
            "device": build.device,
            "build_type": build.build_type,
            "toolkit": "" if build.device == "cpu" else toolkit(build.device),
        },
        "versions": dace_versions(),
        "dace_config": build.ingredients,
        "cpu": cpu.key_features(build.flags),
    }
    if not program.validate:
        ingredients["validate"] = False
    if closure.again:
        ingredients["evaluated"] = list(closure.again)
    library = None if compiled is None else compiled.library
    if library is not None:
        ingredients["library"] = hashlib.sha256(library.read_bytes()).hexdigest()
    request = make_request(sdfg.name, ingredients, baked, build.cmake)
    return ParsedVariant(
        sdfg, raw, parameters, closure, signature, made, stub, build, request, library, program.validate, measured
    )


def watch_of(program: DaceProgram, types: Types, call: Arguments) -> Watch:
    """What a program that no stub can carry reads. Only DaCe's preprocessing is repeated for it."""
    refresh(program)
    with _recording(program, DACE) as recorder:
        program.closure_resolver(dict(types.values), set(types.given))
    return Watch.of(program, call.by_name, recorder, DACE)


@contextlib.contextmanager
def _recording(program: DaceProgram, front_end: FrontEnd) -> Iterator[Recorder]:
    """Records what DaCe evaluates in the block. Raises SourceError for an edited file, also if DaCe fails for that."""
    with recording(lambda value: _meet(value, front_end)) as recorder:
        try:
            yield recorder
        finally:
            for function in (program.f, *recorder.functions):
                check_source(function, program.name)


def _meet(value: Any, front_end: FrontEnd) -> None:
    """DaCe has found a value: if it is another program, that reads its globals again, too."""
    if (met := front_end.program_of(value)) is not None:
        refresh(met)


def build_variant(parsed: ParsedVariant, types: Types, call: Arguments, front_end: FrontEnd = DACE) -> LoadedVariant:
    """Finds or builds the entry of a program that was parsed for these types and this call, and loads it."""
    entry, parameters = parsed.entry(), parsed.parameters
    passed = {*call.places} & types.given
    constants = {name: copy_of(value) for name, value in types.values.items() if name in passed}
    exact = {
        name: number_types(descriptor.dtype)
        for name, descriptor in types.descriptors.items()
        if name in parameters.passed and name not in types.annotated and isinstance(descriptor, dace.data.Scalar)
    }
    names = {*parameters.passed, *parameters.read, *parameters.results}
    described = {name: each for name, each in parsed.sdfg.arrays.items() if name in names}
    arrays = {name: each for name, each in with_members(parsed.sdfg, described) if isinstance(each, dace.data.Array)}
    return LoadedVariant(
        entry.load(), parsed.stub.plan, arrays, parameters, parsed.closure, constants, exact, entry, front_end
    )


def _called(program: DaceProgram, sdfg: dace.SDFG) -> list[Any]:
    """The functions that an SDFG calls. Raises SignatureError for what DaCe takes for a function and does not know."""
    known = program.resolver.callbacks
    callbacks = [name for name, each in sdfg.arglist().items() if isinstance(each.dtype, dace.callback)]
    names = {name: sdfg.callback_mapping.get(name, name) for name in callbacks}
    for name, function in names.items():
        if function not in known:
            raise SignatureError(
                f"Argument '{name}' of program '{sdfg.name}' is a Python object, which no stub passes; annotate it as"
                " dace.compiletime."
            )
    return [known[function][1] for function in names.values()]


def _check_names(program: DaceProgram, sdfg: dace.SDFG, given: Mapping[str, Any]) -> None:
    """Raises TypeError for an argument that is neither a parameter nor a symbol."""
    symbols = {each.name for each in program.global_vars.values() if isinstance(each, dace.symbol)}
    for name in given.keys() - symbols - sdfg.symbols.keys() - {RESULTS}:
        if name not in program.argnames and not name.startswith(("__arg", "__kwarg_")):
            what = "; pass memory for results as 'out'" if name.startswith(RESULTS) else ""
            raise TypeError(f"Program '{program.name}' has no parameter and no symbol '{name}'{what}.")


def _check_nones(program: DaceProgram, types: Types, given: Mapping[str, Any]) -> None:
    """Raises TypeError, as a call does, for None in the place of an array or a number."""
    for name in types.annotated & types.given & given.keys():
        if given[name] is None:
            descriptor = types.descriptors[name]
            dtype = type_name(descriptor.dtype)
            number = f"{'an' if dtype.startswith('i') else 'a'} '{dtype}'"
            what = number if isinstance(descriptor, dace.data.Scalar) else "an array"
            raise TypeError(f"Argument '{name}' of program '{program.name}' must be {what}, not 'NoneType'.")


def _parameters(
    sdfg: dace.SDFG, described: SdfgSignature, types: Types, given: Mapping[str, Any], closure: Closure
) -> Parameters:
    arguments = [each.name for each in described.arguments]
    callbacks = [each.name for each in described.arguments if isinstance(each, CallbackArgument)]
    symbols = {symbol.name for symbol in described.shapes.symbols} if described.shapes else set()
    passed = [
        name
        for name in (*types.descriptors, *given)
        if given.get(name) is not None and name not in types.values and name != RESULTS
    ]
    passed = [name for name in dict.fromkeys(passed) if name in arguments or name in sdfg.arrays or name in symbols]
    read = {name: reading for name, reading in closure.arrays.items() if name in arguments}
    read |= {name: closure.callbacks[sdfg.callback_mapping.get(name, name)] for name in callbacks}
    taken = frozenset((*symbols, *(each.name for each in described.values)))
    return Parameters(tuple(passed), read, results_of(arguments), taken)


_NAMES = (
    "_arrays",
    "symbols",
    "constants_prop",
    "in_connectors",
    "out_connectors",
    "symbol_mapping",
    "callback_mapping",
)
"""Tables in the JSON form of an SDFG whose keys are names of the program."""

_NOT_IN_KEY = (
    *("debuginfo", "guid", "hash", "transformation_hist", "orig_sdfg", "dace_version", "cfg_list_id", "source_files"),
)
"""What the JSON form of an SDFG says of where it comes from; the version of DaCe is an ingredient of its own."""


def _plain(raw: Any, *, names: bool = False) -> Any:
    """The JSON form of an SDFG without what does not change the library. `names`: the keys are names of the program."""
    if isinstance(raw, dict):
        return {
            name: _plain(value, names=not names and name in _NAMES)
            for name, value in raw.items()
            if names or name not in _NOT_IN_KEY
        }
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        return [_plain(value) for value in raw]
    return raw if isinstance(raw, str | int | float | bool | None) else str(raw)
