"""
The program that `gtstub.compile()` returns. Calls are implemented in C (`gtstub._host`); this module adds, builds and
loads variants.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import inspect
import itertools
import numbers
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gtstub import _host, settings
from gtstub.entries.building.lazy import LazyBuild, is_left
from gtstub.entries.building.own_errors import OwnErrors
from gtstub.entries.building.pending import done, hurry, raise_all, wait_for
from gtstub.entries.cache.entry import Entry
from gtstub.errors import CacheError, CompilationError, reason
from gtstub.programs import registry
from gtstub.settings import Mode, mode
from gtstub.stub.signature.dtypes import NUMBERS, DType


@dataclasses.dataclass(frozen=True)
class StaticScalar:
    """
    A scalar that is compiled in: a parameter, or an element of a tuple that is passed for it. `steps` is the path to
    such an element: for each nested tuple the index and the length.
    """

    parameter: str
    path: str
    dtype: DType
    steps: tuple[tuple[int, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Variant:
    """
    One combination of static arguments for one offset provider. `result` is done when the variant is built. It may be a
    `LazyBuild`, which begins at the first call.
    """

    provider: int
    static: Mapping[str, Any]
    result: concurrent.futures.Future[Any]

    @property
    def label(self) -> str:
        return label_of(self.static)


def label_of(static: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_plain(value)}" for name, value in static.items())


def _plain(value: Any) -> Any:
    """The value without numpy's types, whose names would appear in texts."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if hasattr(value, "item") else value


def _exact(value: Any) -> Any:
    """What tells static values apart as stubs do: 0.0 from -0.0, but no NaN from another one."""
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    return repr(float(value)) if isinstance(value, float | np.floating) else value


@dataclasses.dataclass(frozen=True)
class Interface:
    """The signature of a program, its bound and static arguments, and its offset providers."""

    name: str
    signature: inspect.Signature
    doc: str | None
    bound: Mapping[str, Any]
    overridable: bool
    statics: tuple[StaticScalar, ...]
    offset_providers: tuple[Mapping[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Builder:
    """
    The functions that make variants. `static_value` converts a static argument to the types of the program. `start`
    starts the build of a variant; it is None if nothing can be built. `load` makes a callable from the result of a
    build. `release` ends the processes and threads that build; the next build starts them again.
    """

    static_value: Callable[[str, Any], Any]
    start: Callable[[Mapping[str, Any], Mapping[str, Any]], concurrent.futures.Future[Any]] | None
    load: Callable[[Any], Callable[..., None]]
    release: Callable[[], None]


_LISTED = 8
"""At most so many variants are listed in a refusal."""


class CompiledProgram(_host.Dispatcher):
    """
    A program with bound arguments and variants. A call takes the unbound parameters, writes its results into them, and
    returns None. The first call of a variant waits until this is built.
    """

    interface: Interface
    parameters: tuple[str, ...]
    """The names of all parameters of the program, including bound ones."""
    offset_providers: tuple[Mapping[str, Any], ...]
    """Those that the program was compiled for, as they were then."""
    variants: list[Variant]
    __signature__: inspect.Signature
    _numbers: dict[bytes, int]
    """Of the variants, by their keys."""
    _callables: dict[int, Callable[..., None]]
    """Of the variants that are loaded, by their numbers."""
    _builder: Builder
    _adding: threading.Lock
    _raised: set[concurrent.futures.Future[Any]]
    """The failed builds whose errors calls have raised."""
    _programs: list[_host.Program]
    """Those of the variants that were called."""
    _stream: Any

    @classmethod
    def make(cls, interface: Interface, builder: Builder) -> CompiledProgram:
        def choose(key: bytes, provider: int, statics: tuple[Any, ...]) -> Callable[..., None]:
            with OwnErrors():
                if key not in self._numbers:
                    given, compiled = self._described(statics), self._labels(provider)
                    raise ValueError(f"Program '{self.__name__}' was not compiled for ({given}), but for {compiled}.")
                return self.prepare_variant(self._numbers[key])

        parameters = tuple(interface.signature.parameters)
        self = cls(
            interface.name,
            choose,
            parameters,
            dict(interface.bound),
            interface.overridable,
            tuple(
                (parameters.index(static.parameter), static.steps, static.path, NUMBERS[static.dtype])
                for static in interface.statics
            ),
            interface.offset_providers,
        )
        self.interface = interface
        self.parameters = parameters
        self.offset_providers = tuple(MappingProxyType(dict(each)) for each in interface.offset_providers)
        self.variants = []
        self._numbers = {}
        self._callables = {}
        self._builder = builder
        self._adding = threading.Lock()
        self._raised = set()
        self._programs = []
        self._stream = "current"
        self.__signature__ = _unbound(interface)
        self.__doc__ = _help(interface, self.__signature__)
        return self

    @property
    def bound_args(self) -> dict[str, Any]:
        """The bound arguments by name, including static ones."""
        bound = self.interface.bound
        return {name: bound[name] for name in self.parameters if name in bound}

    @property
    def variant_count(self) -> int:
        """Number of variants."""
        return len(self.variants)

    def prepare_variant(self, number: int) -> Callable[..., None]:
        """Builds a variant if need be, and returns its callable."""
        if number not in self._callables:  # Another thread may build it at the same time: the first result is kept.
            with OwnErrors():
                self._callables.setdefault(number, self._build(number))
        return self._callables[number]

    def _build(self, number: int) -> Callable[..., None]:
        builder = self._builder

        def load() -> Callable[..., None]:
            return self._loaded(builder.load(self._wait_for(self.variants[number])))

        if mode() == Mode.BUILD:
            return registry.SettingUp(self.__name__, registry.load_for_set_up(self.__name__, load))
        try:
            return load()
        except CacheError:  # The entry was removed or damaged after it was found.
            if builder.start is None:
                raise
            variant = self.variants[number]
            again = builder.start(variant.static, dict(self.offset_providers[variant.provider]))
            self.variants[number] = dataclasses.replace(variant, result=again)
            return load()

    def _described(self, statics: tuple[Any, ...]) -> str:
        """The static arguments of a call, as they were passed: "limited_area=True, n=3"."""
        passed = {scalar.parameter: value for scalar, value in zip(self.interface.statics, statics, strict=True)}
        return ", ".join(f"{name}={value!s}" for name, value in passed.items())

    def _labels(self, provider: int) -> str:
        """The variants for an offset provider."""
        labels = [f"({variant.label})" for variant in self.variants if variant.provider == provider]
        more = f" and {len(labels) - _LISTED} more" if len(labels) > _LISTED else ""
        return ", ".join(labels[:_LISTED]) + more

    @property
    def release(self) -> Callable[[], None]:
        """Ends the processes and threads that build; the next build starts them again."""
        return self._builder.release

    def bind(self, *args: Any, **kwargs: Any) -> _host.BoundCall:
        """Checks the arguments of a call, and returns the bound call of its variant, which keeps them. Nothing runs."""
        if mode() == Mode.BUILD:
            registry.stop(why=f"program '{self.__name__}' is bound")
        return _host.bind(self, *args, **kwargs)

    @property
    def stream(self) -> Any:
        """
        The stream of a GPU that calls put their work on, as `Program.stream`; that of all variants. If one of them
        refuses a stream, all keep the one that they had.
        """
        if self._programs:
            return self._programs[0].stream
        return _host.get_stream() if self._stream == "current" else self._stream

    @stream.setter
    def stream(self, stream: Any) -> None:
        _host.check_stream(stream)
        done: list[_host.Program] = []
        try:
            for program in self._programs:
                program.stream = stream
                done.append(program)
        except BaseException:
            for program in done:
                program.stream = self._stream
            raise
        self._stream = stream

    def _loaded(self, program: Callable[..., None]) -> Callable[..., None]:
        if isinstance(program, _host.Program):
            if self._stream != "current":
                program.stream = self._stream
            self._programs.append(program)
        return program

    def _wait_for(self, variant: Variant) -> Any:
        """Waits for the build of a variant, and returns its result. Raises CompilationError if it failed."""
        hurry(variant.result)
        wait_for({variant.result: self.__name__})
        if (error := variant.result.exception()) is not None:
            where = f" for ({variant.label})" if variant.label else ""
            text = f"could not be compiled{where}: {reason(error)}"
            self._raised.add(variant.result)
            raise CompilationError(f"Program '{self.__name__}' {text}") from error
        return variant.result.result()

    def compile(self, **static_args: Sequence[Any]) -> None:
        """
        Compiles all combinations of the given values. All static arguments that are not bound need a list of values.

        Raises ValueError, and builds nothing, if one of the variants exists and has not failed.
        """
        bound = self.interface.bound
        statics = dict.fromkeys(static.parameter for static in self.interface.statics)
        choices = [name for name in statics if name not in bound]
        if static_args.keys() != set(choices):
            raise TypeError(
                f"Program '{self.__name__}' must be compiled for values of {_listed(choices)},"
                f" not of {_listed(static_args)}."
            )
        fixed = {name: [bound[name]] for name in statics if name in bound}
        with OwnErrors():
            self.add(*product(self.__name__, {**fixed, **static_args}, self._builder.static_value))

    def add(self, *combinations: Mapping[str, Any]) -> None:
        """Starts the builds of the variants for combinations of static arguments, for each offset provider."""
        order = dict.fromkeys(scalar.parameter for scalar in self.interface.statics)
        ordered = [{name: combination[name] for name in order} for combination in combinations]
        wanted = list(itertools.product(ordered, range(len(self.offset_providers))))
        for static, provider in wanted:
            self._check_new(static, provider)
        if self._builder.start is None:
            raise TypeError(f"Program '{self.__name__}' was unpickled: compile more variants where it was compiled.")
        is_lazy = settings.is_lazy() and len(wanted) > 1 and mode() != Mode.PYTHON
        varying = [name for name in order if any(_exact(each[name]) != _exact(ordered[0][name]) for each in ordered)]
        for static, provider in wanted:
            start = functools.partial(self._builder.start, static, dict(self.offset_providers[provider]))
            result: concurrent.futures.Future[Any]
            try:
                result = LazyBuild(start) if is_lazy else start()
            except Exception as error:
                if mode() != Mode.BUILD:  # This mode builds the other variants, and reports the error at the end.
                    raise
                result = concurrent.futures.Future()
                result.set_exception(error)
            self.place(Variant(provider, static, result))
            if isinstance(result, LazyBuild):
                registry.add_lazy(self.__name__, label_of({name: static[name] for name in varying}), result)

    def _check_new(self, static: Mapping[str, Any], provider: int) -> bytes:
        """The key of a variant that is new, or whose build has failed. Raises ValueError for another one."""
        key = self.key(provider, tuple(static[scalar.parameter] for scalar in self.interface.statics))
        if key in self._numbers:
            variant = self.variants[self._numbers[key]]
            if not variant.result.done() or variant.result.exception() is None:
                raise ValueError(f"Program '{self.__name__}' has already been compiled for ({variant.label}).")
        return key

    def place(self, variant: Variant) -> None:
        """Adds a variant, or replaces one whose build has failed. Loads it if it is built."""
        with self._adding:
            key = self._check_new(variant.static, variant.provider)
            if key in self._numbers:
                self.variants[self._numbers[key]] = variant
            else:
                self.variants.append(variant)  # before it has a number, with which a call looks it up here
                self._numbers[key] = len(self.variants) - 1
            number = self._numbers[key]
        if variant.result.done() and mode() != Mode.BUILD:
            self.prepare_variant(number)

    def wait(self) -> None:
        """
        Waits until all variants are built, and loads them, except in mode Build. Raises the error of a variant, or an
        ExceptionGroup of several, but no error that a call has raised before. Leaves those that wait for a call.
        """
        with OwnErrors():
            self._wait()

    def _wait(self) -> None:
        wait_for({variant.result: self.__name__ for variant in list(self.variants) if not is_left(variant.result)})
        if mode() == Mode.BUILD:
            return
        errors: list[Exception] = []
        known = set(self._raised)
        for number in range(len(self.variants)):
            try:
                if not is_left(self.variants[number].result):
                    self.prepare_variant(number)
            except Exception as error:
                if self.variants[number].result not in known:
                    errors.append(error)
        self._raised = known
        raise_all(f"Variants of program '{self.__name__}' could not be compiled", errors)

    def __repr__(self) -> str:
        parameters, bound, count = self.__signature__.parameters, len(self.interface.bound), len(self.variants)
        variants = f"{count} variant{'' if count == 1 else 's'}"
        return f"<gtstub program '{self.__name__}' ({', '.join(parameters)}; {bound} bound; {variants})>"

    def __reduce__(self) -> tuple[Callable[..., CompiledProgram], tuple[Any, ...]]:
        """Pickles the bound arguments and the paths of the cache entries, from which `restore` loads the variants."""
        for variant in self.variants:
            if isinstance(variant.result, LazyBuild):
                variant.result.begin()
        self.wait()
        results = [variant.result.result() for variant in self.variants]
        if not all(isinstance(entry, Entry) for entry in results):
            raise TypeError(f"Program '{self.__name__}' cannot be pickled: a backend of gt4py itself compiled it.")
        if any(entry.manifest().workspaces for entry in results):
            raise TypeError(f"Program '{self.__name__}' cannot be pickled: its workspace is memory of this process.")
        variants = [(one.provider, one.static, entry.path) for one, entry in zip(self.variants, results, strict=True)]
        providers = tuple(map(dict, self.offset_providers))
        return restore, (dataclasses.replace(self.interface, offset_providers=providers), variants)


def restore(interface: Interface, variants: Sequence[tuple[int, Mapping[str, Any], Path]]) -> CompiledProgram:
    """Unpickles a program. This needs gt4py and DaCe only if the bound arguments do."""
    builder = Builder(lambda _, value: value, None, Entry.load, lambda: None)
    program = CompiledProgram.make(interface, builder)
    for provider, static, path in variants:
        program.place(Variant(provider, static, done(Entry(path))))
    registry.register(program)
    return program


def product(
    name: str, choices: Mapping[str, Sequence[Any]], static_value: Callable[[str, Any], Any]
) -> list[dict[str, Any]]:
    """All combinations of static arguments of program `name`, converted by `static_value`."""
    for argument, values in choices.items():
        if not isinstance(values, list | tuple | range) or not values:
            found = "an empty one" if isinstance(values, list | tuple | range) else f"'{type(values).__name__}'"
            raise TypeError(f"Static argument '{argument}' of program '{name}' needs a list of values, not {found}.")
    exact = {argument: [static_value(argument, value) for value in values] for argument, values in choices.items()}
    for argument, values in exact.items():
        exact_values = [_exact(value) for value in values]
        twice = next((value for value in values if exact_values.count(_exact(value)) > 1), None)
        if twice is not None:
            raise ValueError(f"Static argument '{argument}' of program '{name}' has {_plain(twice)} twice in its list.")
    return [dict(zip(exact, values, strict=True)) for values in itertools.product(*exact.values())]


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _unbound(interface: Interface) -> inspect.Signature:
    """The signature of calls. It lacks bound parameters; if they can be overridden, they are keywords with defaults."""
    parameters = []
    behind_bound = False
    for name, parameter in interface.signature.parameters.items():
        if name not in interface.bound:
            kind = inspect.Parameter.KEYWORD_ONLY if behind_bound else inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(parameter.replace(kind=kind))
        elif interface.overridable:
            behind_bound = True
            value = interface.bound[name]
            default = value if isinstance(value, numbers.Number) else ...  # Fields print all their elements.
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=default))
    return interface.signature.replace(parameters=parameters)


def _help(interface: Interface, signature: inspect.Signature) -> str:
    """The docstring: how to call the program, the docstring of the gt4py program, and what is bound and static."""
    scalars = dict.fromkeys(scalar.parameter for scalar in interface.statics)
    lists = {
        "Bound": interface.bound,
        "Static": [name for name in scalars if name not in interface.bound],
    }
    told = [f"{kind}: {', '.join(names)}." for kind, names in lists.items() if names]
    return "\n\n".join([f"{interface.name}{signature}", *filter(None, [inspect.cleandoc(interface.doc or ""), *told])])
