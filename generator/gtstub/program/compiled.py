"""A program as `gtstub.compile()` returns it. Its calls are C; here is what happens before and around them."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import inspect
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub import _host
from gtstub.building.pending import done, raise_all, wait_for
from gtstub.cache.entry import Entry
from gtstub.errors import CacheError, CompilationError
from gtstub.program import registry
from gtstub.settings import Mode, mode
from gtstub.signature.dtypes import NUMBERS, DType

# --- Variants ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StaticScalar:
    """
    A scalar that is compiled in: a parameter's own, or an element of the tuple that is passed for it. `steps` leads to
    it: (index, length) of each tuple on the way.
    """

    parameter: str
    path: str
    dtype: DType
    steps: tuple[tuple[int, int], ...] = ()

    def read(self, argument: Any) -> Any:
        for index, _ in self.steps:
            argument = argument[index]
        return argument


@dataclasses.dataclass(frozen=True)
class Variant:
    """One combination of static arguments, for one of the offset providers. `result` is done when it is built."""

    provider: int
    static: Mapping[str, Any]
    result: concurrent.futures.Future[Any]

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={_plain(value)}" for name, value in self.static.items())


def _plain(value: Any) -> Any:
    """Without numpy's types, which would show in a text."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if hasattr(value, "item") else value


@dataclasses.dataclass(frozen=True)
class Interface:
    """What callers see of a program, and what is bound."""

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
    How variants come about: `static_value` gives a static argument the types of the program, `start` begins to build a
    variant (None where nothing can be built), `load` makes a callable of what was built, `release` ends the processes
    and threads that build, until they are needed again.
    """

    static_value: Callable[[str, Any], Any]
    start: Callable[[Mapping[str, Any], Mapping[str, Any]], concurrent.futures.Future[Any]] | None
    load: Callable[[Any], Callable[..., None]]
    release: Callable[[], None]


class CompiledProgram(_host.Dispatcher):
    """
    A program with bound arguments and variants: called with the unbound parameters, it writes its results into them and
    returns None. A variant that is still being built is waited for by the first call that needs it.
    """

    interface: Interface
    variants: list[Variant]
    __signature__: inspect.Signature
    _builder: Builder
    _adding: threading.Lock

    @classmethod
    def make(cls, interface: Interface, builder: Builder) -> CompiledProgram:
        parameters = tuple(interface.signature.parameters)
        variants: list[Variant] = []

        def build(number: int) -> Callable[..., None]:
            if mode() == Mode.BUILD:
                registry.stop()
            variant = variants[number]
            try:
                return builder.load(self._wait_for(variant))
            except CacheError:  # The entry has gone or was damaged since it was found.
                if builder.start is None:
                    raise
                offset_provider = dict(interface.offset_providers[variant.provider])
                variants[number] = dataclasses.replace(variant, result=builder.start(variant.static, offset_provider))
                return builder.load(self._wait_for(variants[number]))

        self = cls(
            interface.name,
            parameters,
            build,
            dict(interface.bound),
            interface.overridable,
            tuple(
                (parameters.index(static.parameter), static.steps, static.path, NUMBERS[static.dtype])
                for static in interface.statics
            ),
            interface.offset_providers,
        )
        self.interface = interface
        self.variants = variants
        self._builder = builder
        self._adding = threading.Lock()
        self.__signature__ = _unbound(interface)
        self.__doc__ = interface.doc
        registry.register(self)
        return self

    @property
    def release(self) -> Callable[[], None]:
        """Ends the processes and threads that build, until they are needed again."""
        return self._builder.release

    def _wait_for(self, variant: Variant) -> Any:
        """What was built."""
        wait_for({variant.result: self.__name__})
        if (error := variant.result.exception()) is not None:
            where = f" for ({variant.label})" if variant.label else ""
            raise CompilationError(f"Program '{self.__name__}' could not be compiled{where}: {error}") from error
        return variant.result.result()

    def compile(self, **static_args: Sequence[Any]) -> None:
        """
        Compiles more variants: the product of the lists, which must name all static arguments that are not bound.

        Raises ValueError, before anything is built, where one of them was compiled before and did not fail.
        """
        statics = dict.fromkeys(static.parameter for static in self.interface.statics)
        choices = [name for name in statics if name not in self.interface.bound]
        if static_args.keys() != set(choices):
            raise TypeError(
                f"Program '{self.__name__}' must be compiled for values of {_listed(choices)},"
                f" not of {_listed(static_args)}."
            )
        bound = {name: self.interface.bound[name] for name in statics if name in self.interface.bound}
        choices_of_all = {**{name: [value] for name, value in bound.items()}, **static_args}
        self.add(*product(self.__name__, choices_of_all, self._builder.static_value))

    def add(self, *combinations: Mapping[str, Any]) -> None:
        """Starts to build the variants for combinations of static arguments, for each offset provider."""
        order = dict.fromkeys(scalar.parameter for scalar in self.interface.statics)
        ordered = [{name: combination[name] for name in order} for combination in combinations]
        wanted = list(itertools.product(ordered, range(len(self.offset_providers))))
        for static, provider in wanted:
            self._check_new(static, provider)
        if self._builder.start is None:
            raise TypeError(f"Program '{self.__name__}' was unpickled: compile more variants where it was compiled.")
        for static, provider in wanted:
            try:
                result = self._builder.start(static, dict(self.offset_providers[provider]))
            except Exception as error:
                if mode() != Mode.BUILD:  # which builds what it can, and says in the end what it cannot
                    raise
                result = concurrent.futures.Future()
                result.set_exception(error)
            self.place(Variant(provider, static, result))

    def _values(self, static: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(scalar.read(static[scalar.parameter]) for scalar in self.interface.statics)

    def _check_new(self, static: Mapping[str, Any], provider: int) -> int | None:
        """The number of the variant whose build failed before, if there is one."""
        number = self.find_variant(provider, self._values(static))
        if number is not None:
            variant = self.variants[number]
            if not variant.result.done() or variant.result.exception() is None:
                raise ValueError(f"Program '{self.__name__}' has already been compiled for ({variant.label}).")
        return number

    def place(self, variant: Variant) -> None:
        """Makes a variant one of the program's; loads it if it is built."""
        label = variant.label
        with self._adding:
            number = self._check_new(variant.static, variant.provider)
            if number is not None:
                self.variants[number] = variant
            else:
                self.variants.append(variant)  # first, because whoever finds it in the table asks for it here
                try:
                    number = self.add_variant(variant.provider, self._values(variant.static), label)
                except BaseException:
                    self.variants.pop()
                    raise
        if variant.result.done() and mode() != Mode.BUILD:
            self.prepare_variant(number)

    def wait(self) -> None:
        """
        Waits until all variants are built, and loads them, except in mode Build. Raises what went wrong, several as
        ExceptionGroup.
        """
        wait_for({variant.result: self.__name__ for variant in list(self.variants)})
        if mode() == Mode.BUILD:
            return
        errors: list[Exception] = []
        for number in range(self.variant_count):
            try:
                self.prepare_variant(number)
            except Exception as error:
                errors.append(error)
        raise_all(f"Variants of program '{self.__name__}' could not be compiled", errors)

    def __repr__(self) -> str:
        count = len(self.variants)
        bound = len(self.interface.bound)
        return (
            f"<gtstub program '{self.__name__}' ({', '.join(self.__signature__.parameters)};"
            f" {bound} bound; {count} variant{'' if count == 1 else 's'})>"
        )

    def __reduce__(self) -> tuple[Callable[..., CompiledProgram], tuple[Any, ...]]:
        """Bound arguments travel with the program; compiled ones stay in the cache, and are loaded from there again."""
        self.wait()
        results = [variant.result.result() for variant in self.variants]
        if not all(isinstance(entry, Entry) for entry in results):
            raise TypeError(
                f"Program '{self.__name__}' cannot be pickled: it was compiled by a backend of gt4py's own."
            )
        if any(entry.manifest().workspaces for entry in results):
            raise TypeError(f"Program '{self.__name__}' cannot be pickled: its workspace is memory of this process.")
        bare = self.interface.signature.replace(
            parameters=[
                parameter.replace(annotation=inspect.Parameter.empty)
                for parameter in self.interface.signature.parameters.values()
            ],
            return_annotation=inspect.Signature.empty,
        )
        variants = [
            (variant.provider, variant.static, entry.path)
            for variant, entry in zip(self.variants, results, strict=True)
        ]
        providers = tuple(map(dict, self.offset_providers))
        return restore, (dataclasses.replace(self.interface, signature=bare, offset_providers=providers), variants)


def restore(interface: Interface, variants: Sequence[tuple[int, Mapping[str, Any], Path]]) -> CompiledProgram:
    """What `pickle` makes a program of again. Needs neither gt4py nor DaCe, beyond what the bound arguments need."""
    builder = Builder(lambda _, value: value, None, Entry.load, lambda: None)
    program = CompiledProgram.make(interface, builder)
    for provider, static, path in variants:
        program.place(Variant(provider, static, done(Entry(path))))
    return program


def product(
    name: str, choices: Mapping[str, Sequence[Any]], static_value: Callable[[str, Any], Any]
) -> list[dict[str, Any]]:
    """All combinations of static arguments of program `name`, as `static_value` makes them."""
    for argument, values in choices.items():
        if not isinstance(values, list | tuple | range) or not values:
            found = "an empty one" if isinstance(values, list | tuple | range) else f"'{type(values).__name__}'"
            raise TypeError(f"Static argument '{argument}' of program '{name}' needs a list of values, not {found}.")
    exact = {argument: [static_value(argument, value) for value in values] for argument, values in choices.items()}
    return [dict(zip(exact, values, strict=True)) for values in itertools.product(*exact.values())]


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _unbound(interface: Interface) -> inspect.Signature:
    """The signature of calls."""
    parameters = []
    behind_bound = False
    for name, parameter in interface.signature.parameters.items():
        if name not in interface.bound:
            kind = inspect.Parameter.KEYWORD_ONLY if behind_bound else inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(parameter.replace(kind=kind))
        elif interface.overridable:
            behind_bound = True
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=interface.bound[name]))
    return interface.signature.replace(parameters=parameters)
