"""A program as `gtstub.compile()` returns it. Its calls are C; here is what happens before and around them."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import inspect
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from gtstub import _host, cache, entry, ranks
from gtstub.errors import CompilationError
from gtstub.printing import make_error_console
from gtstub.signature.model import DType
from gtstub.waiting import Build

PATIENCE = 0.3
"""Seconds of waiting before anybody is told."""


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
    """One combination of static arguments, for one of the offset providers. `artifact` is done when it is built."""

    provider: int
    static: Mapping[str, Any]
    artifact: concurrent.futures.Future[Any]

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
    variant, `load` makes a callable of what was built, `release` ends the processes and threads that build, until they
    are needed again.
    """

    static_value: Callable[[str, Any], Any]
    start: Callable[[Mapping[str, Any], Mapping[str, Any]], concurrent.futures.Future[Any]]
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
        dtypes = get_args(DType)

        def build(number: int) -> Callable[..., None]:
            variant = variants[number]
            wait_for({variant.artifact: interface.name})
            if (error := variant.artifact.exception()) is not None:
                where = f" for ({variant.label})" if variant.label else ""
                raise CompilationError(f"Program '{interface.name}' could not be compiled{where}: {error}") from error
            return builder.load(variant.artifact.result())

        self = cls(
            interface.name,
            parameters,
            build,
            dict(interface.bound),
            interface.overridable,
            tuple(
                (parameters.index(static.parameter), static.steps, static.path, 1 + dtypes.index(static.dtype))
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
        with _registry:
            _alive.add(self)
        return self

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
        for static, provider in wanted:
            artifact = self._builder.start(static, dict(self.offset_providers[provider]))
            self.place(Variant(provider, static, artifact))

    def _values(self, static: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(scalar.read(static[scalar.parameter]) for scalar in self.interface.statics)

    def _check_new(self, static: Mapping[str, Any], provider: int) -> int | None:
        """The number of the variant whose build failed before, if there is one."""
        number = self.find_variant(provider, self._values(static))
        if number is not None:
            variant = self.variants[number]
            if not variant.artifact.done() or variant.artifact.exception() is None:
                raise ValueError(f"Program '{self.__name__}' was compiled for ({variant.label}) before.")
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
        if variant.artifact.done():
            self.prepare_variant(number)

    def wait(self) -> None:
        """Waits until all variants are built, and loads them. Raises what went wrong, several as ExceptionGroup."""
        wait_for({variant.artifact: self.__name__ for variant in list(self.variants)})
        errors: list[Exception] = []
        for number in range(self.variant_count):
            try:
                self.prepare_variant(number)
            except Exception as error:
                errors.append(error)
        _raise_all(f"Variants of program '{self.__name__}' could not be compiled", errors)

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
        artifacts = [variant.artifact.result() for variant in self.variants]
        if not all(isinstance(artifact, cache.StubArtifact) for artifact in artifacts):
            raise TypeError(
                f"Program '{self.__name__}' cannot be pickled: it was compiled by a backend of gt4py's own."
            )
        if any(entry.read_manifest(artifact.path)["workspaces"] for artifact in artifacts):
            raise TypeError(f"Program '{self.__name__}' cannot be pickled: its workspace is memory of this process.")
        bare = self.interface.signature.replace(
            parameters=[
                parameter.replace(annotation=inspect.Parameter.empty)
                for parameter in self.interface.signature.parameters.values()
            ],
            return_annotation=inspect.Signature.empty,
        )
        variants = [
            (variant.provider, variant.static, artifact.path)
            for variant, artifact in zip(self.variants, artifacts, strict=True)
        ]
        providers = tuple(map(dict, self.offset_providers))
        return restore, (dataclasses.replace(self.interface, signature=bare, offset_providers=providers), variants)


def restore(interface: Interface, variants: Sequence[tuple[int, Mapping[str, Any], Path]]) -> CompiledProgram:
    """What `pickle` makes a program of again. Needs neither gt4py nor DaCe, beyond what the bound arguments need."""

    def refuse(*_: object) -> concurrent.futures.Future[Any]:
        raise TypeError(f"Program '{interface.name}' was unpickled: compile more variants where it was compiled.")

    builder = Builder(lambda _, value: value, refuse, cache.StubArtifact.load, lambda: None)
    program = CompiledProgram.make(interface, builder)
    for provider, static, path in variants:
        built: concurrent.futures.Future[Any] = concurrent.futures.Future()
        built.set_result(cache.StubArtifact(path))
        program.place(Variant(provider, static, built))
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


# --- Waiting ----------------------------------------------------------------------------------------------------------

_alive: weakref.WeakSet[CompiledProgram] = weakref.WeakSet()
_registry = threading.Lock()


def wait_for_compilation() -> None:
    """
    Waits until all programs of `gtstub.compile()` are built, loads them, and ends the processes that have built them.

    Raises what went wrong, an ExceptionGroup if it was more than one thing.
    """
    with _registry:
        programs = list(_alive)
    builds = {variant.artifact: program.__name__ for program in programs for variant in program.variants}
    try:
        wait_for({build: name for build, name in builds.items() if not _is_elsewhere(build)})
        if (exchange := ranks.current().exchange) is not None:
            exchange([build for build in builds if isinstance(build, Build)])
    finally:
        for release in {program._builder.release for program in programs}:
            release()
    errors: list[Exception] = []
    for program in programs:
        try:
            program.wait()
        except ExceptionGroup as group:
            errors.extend(group.exceptions)
        except Exception as error:
            errors.append(error)
    _raise_all("Programs could not be compiled", errors)


def _raise_all(what: str, errors: Sequence[Exception]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(what, errors)


def _is_elsewhere(build: concurrent.futures.Future[Any]) -> bool:
    return isinstance(build, Build) and build.is_elsewhere and not build.done()


def wait_for(builds: Mapping[concurrent.futures.Future[Any], str]) -> None:
    """
    Waits for builds, each under the name of its program; says on stderr what it waits for where this takes long. Raises
    CompilationError for a build of another rank's that `wait_for_compilation` must bring.
    """
    if (name := next((name for build, name in builds.items() if _is_elsewhere(build)), None)) is not None:
        raise CompilationError(
            f"Program '{name}' is built where this rank does not see it: call 'gtstub.wait_for_compilation()' on all"
            " ranks first."
        )
    _, pending = concurrent.futures.wait(builds, timeout=PATIENCE)
    if not pending:
        return
    console = make_error_console()
    begin = time.monotonic()
    with console.status("") as status:
        while pending:
            names = list(dict.fromkeys(builds[build] for build in builds if build in pending))
            text = f"gtstub: compiling {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}"
            if len(builds) > 1:
                text += f" ({len(builds) - len(pending)} of {len(builds)} variants built)"
            if not console.is_terminal:
                console.print(text)
                concurrent.futures.wait(pending)
                return
            status.update(f"{text}, {time.monotonic() - begin:.0f} s")
            _, pending = concurrent.futures.wait(pending, timeout=1, return_when=concurrent.futures.FIRST_COMPLETED)
