"""
NDSL's `orchestrate`, with calls through stubs: NDSL parses a method, and optimises, builds and loads its SDFG as ever;
gtstub calls it. Works with every NDSL that has the names below; the tests do with a stand-in of them.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dace import SDFG, CompiledSDFG
from dace.config import Config
from dace.frontend.python.parser import DaceProgram

from gtstub._host import Dispatcher, Overload
from gtstub.errors import PlanError, SignatureError
from gtstub.frameworks.dace.call_arguments import Arguments
from gtstub.frameworks.dace.front_end import Compiled, FrontEnd
from gtstub.frameworks.dace.internals import counts_up, python_of, types_of
from gtstub.frameworks.dace.paths import Step
from gtstub.frameworks.dace.variant import LoadedVariant, Options, build_variant, parse_variant
from gtstub.settings import Mode, mode

ORCHESTRATION = "ndsl.dsl.dace.orchestration"
EXECUTABLES = "ndsl.dsl.dace.dace_executable"
QUANTITY = "ndsl.quantity"

_BUILDING = threading.RLock()


def orchestrate(
    *,
    obj: object,
    config: Any,
    method_to_orchestrate: str = "__call__",
    dace_compiletime_args: Sequence[str] | None = None,
    fallback: bool = False,
    **options: Any,
) -> None:
    """
    Orchestrates a method of an object as NDSL does, but calls it through a stub. Without orchestration in `config` it
    does what NDSL does. The object may be orchestrated by NDSL already, as an NDSLRuntime is.

    With `fallback`, NDSL makes the calls of a program that no stub can carry, after a warning; without it, the first
    call raises SignatureError or PlanError. `options` are other arguments that NDSL's `orchestrate` takes.
    """
    ndsl = importlib.import_module(ORCHESTRATION)
    if (lazy := _lazy_method(ndsl, obj, method_to_orchestrate)) is None:
        ndsl.orchestrate(
            obj=obj,
            config=config,
            method_to_orchestrate=method_to_orchestrate,
            dace_compiletime_args=dace_compiletime_args,
            **options,
        )
        lazy = _lazy_method(ndsl, obj, method_to_orchestrate)
    if lazy is None or isinstance(_callable(obj, method_to_orchestrate), _Stubbed):
        return
    stubbed = _Stubbed.of(lazy, lazy.lazy_method.config, fallback)
    if method_to_orchestrate != "__call__":
        setattr(obj, method_to_orchestrate, stubbed)
        return
    names = {"__call__": stubbed, "__module__": type(obj).__module__, "__qualname__": type(obj).__qualname__}
    obj.__class__ = type(type(obj).__name__, (type(obj),), names)  # NDSL names programs by the type's name


def orchestrate_function(
    config: Any, dace_compiletime_args: Sequence[str] | None = None, *, fallback: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that orchestrates a function as NDSL's does; see `orchestrate`."""

    def decorate(function: Callable[..., Any]) -> Any:
        ndsl = importlib.import_module(ORCHESTRATION)
        lazy = ndsl.orchestrate_function(config, dace_compiletime_args, **options)(function)
        return _Stubbed.of(lazy, config, fallback) if hasattr(lazy, "daceprog") else lazy

    return decorate


def _callable(obj: object, method: str) -> Any:
    return vars(type(obj)).get(method) if method == "__call__" else getattr(obj, method, None)


def _lazy_method(ndsl: Any, obj: object, method: str) -> Any:
    """What NDSL has put in the place of a method of an object that it has orchestrated; else None."""
    for each in ndsl._LazyComputepathMethod.bound_callables.values():
        if each.obj_to_bind is obj and each.lazy_method.func.__name__ == method:
            return each
    return None


class _Ndsl(FrontEnd):
    """Quantities hold arrays. They, and dataclasses of them such as States, are read at each call."""

    def steps(self, value: Any) -> tuple[str, ...]:
        is_quantity = hasattr(type(value), "__descriptor__") and hasattr(value, "_data")
        return ("_data",) if is_quantity else ()  # not an array that was seen before, because buffers are swapped

    def attribute(self, owner: Any, name: str) -> tuple[Step, ...]:
        """NDSL lets only methods of a runtime read its Locals; a call takes them from the object's dict."""
        if not _is_guarded(type(owner)) or hasattr(getattr(type(owner), name, None), "__set__"):
            return (name,)
        is_local = isinstance(vars(owner).get(name), importlib.import_module(QUANTITY).Local)
        return ("__dict__", (name,)) if is_local else (name,)

    def is_read(self, value: Any) -> bool:
        if self.steps(value):
            return True
        is_object = dataclasses.is_dataclass(value) and not isinstance(value, type)
        return is_object and any(self.is_read(getattr(value, each.name, None)) for each in dataclasses.fields(value))

    def program_of(self, callee: Any) -> DaceProgram | None:
        ndsl = importlib.import_module(ORCHESTRATION)
        for each in (callee, _lazy_method(ndsl, callee, "__call__")):
            if isinstance(program := getattr(each, "daceprog", each), DaceProgram):
                return program
        return None


def _inside(self: object, build: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:  # noqa: ARG001
    """Builds as in a method of `self`, for which NDSL looks in the stack when DaCe reads a Local."""
    return build()


def _is_guarded(kind: type) -> bool:
    """Whether NDSL, and nobody else, decides who may read attributes of an object of this type."""
    by = [each for each in kind.__mro__[:-1] if "__getattribute__" in vars(each)]
    return bool(by) and all(each.__module__.partition(".")[0] == "ndsl" for each in by)


class _Stubbed:
    """
    Takes the place of NDSL's callable for an orchestrated function or method, whose class is the other base of each
    object's class. The first call builds; after that, each goes through the stub.
    """

    daceprog: DaceProgram
    _config: Any
    _fallback: bool
    _call: Callable[..., Any]
    _last: tuple[tuple[Any, ...], Mapping[str, Any]]
    """The arguments of the last call, of which NDSL reports a hash."""

    @classmethod
    def of(cls, lazy: Any, config: Any, fallback: bool) -> Any:
        kind = type(f"Stubbed{type(lazy).__name__}", (cls, type(lazy)), {})
        self: Any = object.__new__(kind)
        vars(self).update(vars(lazy))
        self._config = config
        self._fallback = fallback
        self._call = self._first_call
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._last = args, kwargs
        return self._call(*args, **kwargs)

    def clear(self) -> None:
        """Forgets the program, so that the next call has NDSL build it anew."""
        with _BUILDING:
            _executables(self._config).pop(self.daceprog, None)
            self._call = self._first_call

    def _first_call(self, *args: Any, **kwargs: Any) -> Any:
        if mode() == Mode.PYTHON:
            return python_of(self.daceprog)(*args, **kwargs)
        with _BUILDING:
            if self._call == self._first_call:
                try:
                    self._call = _inside(getattr(self, "obj_to_bind", None), lambda: self._build(args, kwargs))
                except (SignatureError, PlanError) as error:
                    if not self._fallback:
                        raise
                    warnings.warn(f"NDSL makes the calls of '{self.daceprog.name}': {error}", stacklevel=3)
                    self._call = super().__call__  # type: ignore[misc]
        if getattr(_executables(self._config).get(self.daceprog), "_record", False):
            return super().__call__(*args, **kwargs)  # type: ignore[misc]  # NDSL records this call
        return self._call(*args, **kwargs)

    def _build(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
        program, executables = self.daceprog, _executables(self._config)
        self._compile(args, kwargs)
        if program not in executables:
            raise RuntimeError(f"NDSL has built no executable of program '{program.name}'.")
        call = Arguments.of(program, args, kwargs)
        variant = self._variant(executables[program].compiled_sdfg, call)
        executables[program] = _with_hash(executables[program], self)

        def choose(*args: Any, **kwargs: Any) -> Overload:
            found = Arguments.of(program, args, kwargs)
            if found.places.keys() != call.places.keys():
                raise TypeError(
                    f"Program '{program.name}' was compiled for calls with the arguments {sorted(call.places)}, but"
                    f" this one has {sorted(found.places)}."
                )
            return variant.overload(found)

        return self._finished(Dispatcher(program.f.__name__, choose), variant)

    def _compile(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """
        Has NDSL parse, build and load the program, unless it has done so already. In mode Build, NDSL then ends the
        process; its rank that has built the library builds the stub first.
        """
        ndsl, program, config = importlib.import_module(ORCHESTRATION), self.daceprog, self._config
        is_newer = hasattr(ndsl, "parse_sdfg")
        optimization = (getattr(getattr(self, "lazy_method", self), "optimization_config", None),) if is_newer else ()
        parse = ndsl.parse_sdfg if is_newer else ndsl._parse_sdfg
        sdfg = parse(program, config, *optimization, *args, **kwargs)
        if program in _executables(config):
            return
        if isinstance(sdfg, SDFG) and not counts_up(sdfg):
            warnings.warn(f"NDSL may leave out a branch in a loop of '{program.name}' that counts down.", stacklevel=2)
        build = ndsl.get_dace_executable if is_newer else ndsl._build_sdfg
        try:
            build(program, sdfg, config, *optimization, args, kwargs)
        except SystemExit:
            if sdfg is not None:
                compiled, _ = program.load_precompiled_sdfg(sdfg.build_folder, *args, **kwargs)
                self._variant(compiled, Arguments.of(program, args, kwargs))
            raise

    def _variant(self, compiled: CompiledSDFG, call: Arguments) -> LoadedVariant:
        front_end, options = _Ndsl(), Options(Config.get("compiler", "build_type"), _flags(), bounds=True)
        types, made = types_of(self.daceprog, call.args, call.kwargs), Compiled(compiled.sdfg, Path(compiled.filename))
        parsed = parse_variant(self.daceprog, call.args, call.kwargs, types, call, options, front_end, made)
        return build_variant(parsed, types, call, front_end)

    def _finished(self, call: Callable[..., Any], variant: LoadedVariant) -> Callable[..., Any]:
        """A call with NDSL's timers and NDSL's results, if there are any."""
        collector = self._config.performance_collector
        if not variant.parameters.results and type(collector).__name__.startswith("Null"):
            return call
        clock, name, results = collector.timestep_timer.clock, self.daceprog.name, _results(self._config)

        def finished(*args: Any, **kwargs: Any) -> Any:
            with clock(f"{name}.Call"), clock(f"{name}.Runtime"):
                found = call(*args, **kwargs)
            collector.collect_performance()
            return results(found)

        return finished


def _flags() -> dict[str, str]:
    """The flags that NDSL has built the library with."""
    return {f"compiler.{device}.args": Config.get("compiler", device, "args") for device in ("cpu", "cuda")}


def _executables(config: Any) -> Any:
    """NDSL's executables by program: of a configuration, or of the process in newer versions."""
    module = importlib.import_module(EXECUTABLES)
    for name in ("DACE_EXECUTABLE_CACHE", "DACE_EXECUTABLE_POOL"):
        if hasattr(module, name):
            return getattr(module, name)
    return config.loaded_dace_executables


def _results(config: Any) -> Callable[[Any], Any]:
    """NDSL's function that makes its results of DaCe's."""
    for module in (ORCHESTRATION, EXECUTABLES):
        function = getattr(importlib.import_module(module), "_download_results_from_dace", None)
        if function is not None:
            wants_backend = "backend" in inspect.signature(function).parameters
            first = config.get_backend() if wants_backend else config
            return lambda results: function(first, results)
    raise RuntimeError("gtstub does not find how this version of NDSL returns results.")


def _with_hash(executable: Any, stubbed: _Stubbed) -> Any:
    """A copy of NDSL's executable that has the hash of the arguments of the last call, made when it is asked for."""

    def arguments_hash(self: Any) -> int:
        make = getattr(self, "hash_expected_dsl_args", None) or self._hash_expected_dsl_args
        return make(*stubbed._last)  # type: ignore[no-any-return]

    name = "arguments_hash" if hasattr(executable, "arguments_hash") else "_arguments_hash"
    kind = type(type(executable).__name__, (type(executable),), {name: property(arguments_hash, _ignore)})
    copied: Any = object.__new__(kind)
    vars(copied).update(vars(executable))
    return copied


def _ignore(self: Any, value: int) -> None:
    """NDSL sets the hash of a call that it makes itself."""
