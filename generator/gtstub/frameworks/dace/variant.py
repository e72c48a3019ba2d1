"""Builds the variants of DaCe programs: for each set of types that calls pass, a program that was compiled for them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dace
import numpy as np
from dace.frontend.python.parser import DaceProgram

from gtstub import settings
from gtstub._host import Overload, Program
from gtstub.building.waiting import build_once
from gtstub.codegen.stub import make_stub
from gtstub.frameworks.dace.build import Build
from gtstub.frameworks.dace.callbacks import callbacks_of
from gtstub.frameworks.dace.closures import Closure, Given, Reading, closure_of
from gtstub.frameworks.dace.front_end import Compiled, FrontEnd
from gtstub.frameworks.dace.internals import Types, parse_program
from gtstub.frameworks.dace.program_signature import Parameters, program_signature, renamed, results_of
from gtstub.frameworks.dace.request import make_request
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.versions import dace_versions
from gtstub.plan.model import AxisValue, CallPlan, Slot, Value
from gtstub.signature.dtypes import NAMES
from gtstub.signature.model import Device
from gtstub.toolchain import cpu
from gtstub.toolchain.arch import named_arch, toolkit


@dataclasses.dataclass(frozen=True)
class Options:
    """How the variants of a program are built; the arguments of `gtstub.program`."""

    build_type: str
    dace_config: Mapping[str, Any]
    bounds: bool

    def build(self, device: Device) -> Build:
        overrides = self.dace_config
        if device != "cpu" and (known := named_arch("gpu").removeprefix("sm_")):
            overrides = {"compiler.cuda.cuda_arch": known, "compiler.cuda.hip_arch": known, **overrides}
        return Build(device, device, self.build_type, overrides)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arguments of a call by the names that DaCe gives their parameters, and the number of each in the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    places: Mapping[str, int]

    @classmethod
    def of(cls, program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        parameters = [each for name, each in program.signature.parameters.items() if name != program.objname]
        return cls.bind(program.signature.replace(parameters=parameters), args, kwargs)

    @classmethod
    def bind(cls, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """Starred parameters become '__arg0' and '__kwarg_x', as in DaCe. Other names may be those of symbols."""
        places: dict[str, int] = {}
        named = {name: len(args) + number for number, name in enumerate(kwargs)}
        next_ = 0
        for name, parameter in signature.parameters.items():
            match parameter.kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    places |= {f"__arg{i}": place for i, place in enumerate(range(next_, len(args)))}
                    next_ = len(args)
                case inspect.Parameter.VAR_KEYWORD:
                    places |= {f"__kwarg_{each}": named.pop(each) for each in list(named)}
                case inspect.Parameter.KEYWORD_ONLY:
                    if name in named:
                        places[name] = named.pop(name)
                case _ if next_ < len(args):
                    places[name] = next_
                    next_ += 1
                case _ if name in named:
                    places[name] = named.pop(name)
        return cls(args, kwargs, places | named)

    def __getitem__(self, name: str) -> Any:
        return [*self.args, *self.kwargs.values()][self.places[name]]


@dataclasses.dataclass(frozen=True)
class Variant:
    """A compiled program. `constants` are the compile-time arguments of the call that it was compiled for."""

    program: Program
    plan: CallPlan
    parameters: Parameters
    closure: Closure
    constants: Mapping[str, Any]
    devices_array: Callable[..., Any]
    front_end: FrontEnd

    @functools.cached_property
    def _overloads(self) -> dict[tuple[Any, ...], Overload]:
        return {}

    def overload(self, call: Arguments) -> Overload:
        """How calls like `call` call the program; the same object for calls of the same form."""
        steps = {name: self.front_end.steps(call[name]) for name in self.parameters.passed}
        form = len(call.args), tuple(call.kwargs), tuple(steps.values())
        if form not in self._overloads:
            self._overloads[form] = self._make_overload(call, steps)
        return self._overloads[form]

    def _make_overload(self, call: Arguments, steps: Mapping[str, tuple[str, ...]]) -> Overload:
        held = {name: Reading(Given(name), found, name) for name, found in steps.items() if found}
        readings = {**self.parameters.read, **held}
        numbers = {name: -1 - number for number, name in enumerate(readings)}
        places = [numbers[name] if name in numbers else call.places[name] for name in self.parameters.passed]
        results = len(self.parameters.results)
        constants = [self._constant(name, value) for name, value in self.constants.items()]
        return Overload(
            self.program,
            (*places, *(numbers[name] for name in self.parameters.read)),
            tuple(reading.plain(call.places) for reading in readings.values()),
            tuple((*reading.plain(call.places), value) for reading, value in (*constants, *self.closure.constants)),
            results,
            self._allocator() if results else None,
            call.places.get("out", -1) if results else -1,
            results == 1,
        )

    def _constant(self, name: str, value: Any) -> tuple[Reading, Any]:
        if self.front_end.is_read(value):
            return Reading(Given(name), ("__class__",), f"type({name})"), type(value)
        return Reading(Given(name), (), name), value

    def _allocator(self) -> Callable[..., tuple[Any, ...]]:
        """A function of the arguments before the results that makes new arrays for the results."""
        names, plan = self.parameters.names, self.plan
        order = [names[name] for name in (*self.parameters.passed, *self.parameters.read)]
        place = {name: number for number, name in enumerate(order)}
        fields = {leaf.name: leaf for leaf in plan.fields}
        results = [fields[names[name]] for name in self.parameters.results]
        required = {(each.leaf.name, each.axis): each.value for each in plan.required_shapes if each.name == "size"}
        known = [
            (each, place[each.source.leaf.name])
            for each in (*plan.slots, *plan.symbols)
            if isinstance(each.source, AxisValue | Value) and each.source.leaf.name in place
        ]
        sizes: dict[tuple[str, int], str] = {
            (each.later.leaf.name, each.later.axis): each.symbol
            for each in plan.assertions
            if isinstance(each.later, AxisValue) and each.later.name == "size"
        }

        def allocate(*arguments: Any) -> tuple[Any, ...]:
            symbols = {slot.name: _value(slot, arguments[number]) for slot, number in known}
            made = []
            for leaf in results:
                shape = []
                for number, axis in enumerate(leaf.axes):
                    if axis.fixed.size is not None:
                        shape.append(axis.fixed.size)
                    elif (leaf.name, number) in sizes:
                        shape.append(symbols[sizes[leaf.name, number]])
                    else:
                        shape.append(required[leaf.name, number].value(symbols))
                made.append(self.devices_array(tuple(shape), NAMES_OF_NUMPY.get(leaf.dtype, leaf.dtype)))
            return tuple(made)

        return allocate


DACE = FrontEnd()

NAMES_OF_NUMPY = {"bool": "bool_"}


def _value(slot: Slot, argument: Any) -> int:
    source = slot.source
    if not isinstance(source, AxisValue):
        return int(argument)
    if source.name == "size":
        found = argument.shape[source.axis]
    else:
        found = argument.strides[source.axis] // NAMES[source.leaf.dtype].size
    return int((found - source.minus) // source.divisor)


def build_variant(
    program: DaceProgram,
    types: Types,
    call: Arguments,
    options: Options,
    front_end: FrontEnd = DACE,
    compiled: Compiled | None = None,
) -> Variant:
    """
    Parses a program, unless it was `compiled` already, and finds or builds its entry.

    Raises SignatureError and PlanError for what no stub can carry, the errors of DaCe, and those of a build.
    """
    sdfg = parse_program(program, call.args, call.kwargs) if compiled is None else compiled.sdfg
    closure = closure_of(program, {name: call[name] for name in call.places}, front_end)
    parameters = _parameters(sdfg, types, call, closure)
    raw = sdfg.to_json()
    signature = program_signature(sdfg, parameters)
    names = parameters.names
    described = sdfg_signature(sdfg, raw, bounds=options.bounds and settings.bounds(), has_domains=False)
    made = renamed(described, names)
    stub = make_stub(made, signature)
    build = options.build(made.device)
    baked = {reading.source: value for reading, value in closure.constants if isinstance(value, bool | int | float)}
    ingredients = {
        "sdfg": hashlib.sha256(json.dumps(_plain(raw), sort_keys=True).encode()).hexdigest(),
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
    if compiled is not None:
        ingredients["library"] = hashlib.sha256(compiled.library.read_bytes()).hexdigest()
    request = make_request(sdfg.name, ingredients, baked, build)
    entry = request.find()
    if entry is None:
        with build.context():
            entry = build_once(
                request.cache,
                request.key,
                functools.partial(
                    build.publish, request, sdfg, stub, signature, made, names, compiled.library if compiled else None
                ),
            )
    constants = {name: value for name, value in types.values.items() if name in call.places}
    constants |= {name: None for name, place in call.places.items() if call[name] is None}
    return Variant(entry.load(), stub.plan, parameters, closure, constants, _array_maker(build.device), front_end)


def _parameters(sdfg: dace.SDFG, types: Types, call: Arguments, closure: Closure) -> Parameters:
    arguments = sdfg.arglist()
    passed = [
        name
        for name in (*types.descriptors, *call.places)
        if name in call.places and call[name] is not None and name not in types.values and name != "out"
    ]
    passed = [name for name in dict.fromkeys(passed) if name in arguments or name in sdfg.arrays]
    read = {name: reading for name, reading in closure.arrays.items() if name in arguments}
    read |= {name: closure.callbacks[sdfg.callback_mapping.get(name, name)] for name in callbacks_of(sdfg)}
    return Parameters(tuple(passed), read, results_of(arguments))


def _array_maker(device: Device) -> Callable[..., Any]:
    if device == "cpu":
        return np.empty
    import cupy  # Only programs for a GPU need it.

    return cupy.empty  # type: ignore[no-any-return]


_NOT_IN_KEY = ("debuginfo", "guid", "hash", "transformation_hist", "orig_sdfg", "dace_version", "cfg_list_id")
"""What the JSON form of an SDFG says of where it comes from; the version of DaCe is an ingredient of its own."""


def _plain(raw: Any) -> Any:
    """The JSON form of an SDFG without what does not change the library."""
    if isinstance(raw, dict):
        return {name: _plain(value) for name, value in raw.items() if name not in _NOT_IN_KEY}
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        return [_plain(value) for value in raw]
    return raw if isinstance(raw, str | int | float | bool | None) else str(raw)
