"""`gtstub.program`: calls DaCe programs through stubs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import dace
from dace.frontend.python.parser import DaceProgram

from gtstub import settings
from gtstub._host import Dispatcher, Overload
from gtstub.entries import spans
from gtstub.entries.building.own_errors import OwnErrors
from gtstub.errors import PlanError, SignatureError
from gtstub.frameworks.dace.by_dace import ByDace
from gtstub.frameworks.dace.call_arguments import Arguments, signature_of
from gtstub.frameworks.dace.changes import Watch
from gtstub.frameworks.dace.closures import UsedUpError
from gtstub.frameworks.dace.internals import Types, examples, python_of, refresh, types_of
from gtstub.frameworks.dace.structures import is_struct
from gtstub.frameworks.dace.values import copy_of, same
from gtstub.frameworks.dace.variant import (
    LoadedVariant,
    Options,
    ParsedVariant,
    build_variant,
    parse_variant,
    watch_of,
)
from gtstub.programs import registry
from gtstub.settings import Mode, mode

NOTHING: Mapping[str, Any] = {}

MOST_VARIANTS = 8
"""
Of the same types, with `recompile=True`. More are an error, and none is dropped for them: a value that differs at every
call would cost a build at every call, and fill the cache.
"""

CHANGED = "call its method clear() to compile it anew, or make it with gtstub.program(recompile=True)"
BOUND = "a bound call keeps its variant: bind it again"
"""What to do if what was compiled in has changed: only a bound call of a program that is compiled anew is refused."""

_PARSING = threading.RLock()
"""DaCe's parser is not made for several threads, and programs that call each other share what it finds."""


_PROGRAMS: weakref.WeakSet[StubbedProgram] = weakref.WeakSet()

_OF_PARENT: list[tuple[Types, LoadedVariant | ByDace]] = []
"""Variants from before a fork. A callback that forks is still called by one of them."""


def _forget_variants_of_parent() -> None:
    """In a forked child: each program loads its variants again, because none survives a fork."""
    if not _PARSING._is_owned():  # type: ignore[attr-defined]
        _PARSING._at_fork_reinit()  # type: ignore[attr-defined]  # another thread of the parent may have it
    for program in list(_PROGRAMS):
        _OF_PARENT.extend(program._variants)
        program._variants.clear()
        program.forget()


os.register_at_fork(after_in_child=_forget_variants_of_parent)


class StubbedProgram(Dispatcher):
    """
    A DaCe program that is called through stubs: as the program itself, but each variant is built by gtstub, into its
    cache. The program that a call needs is built at the first call with its types.
    """

    dace_program: DaceProgram
    __qualname__: str
    __wrapped__: Callable[..., Any]
    __signature__: inspect.Signature
    fallback_calls: int
    """Calls that went through DaCe, because no stub can carry them."""
    _options: Options
    _fallback: bool
    _recompile: bool | int | None
    _variants: list[tuple[Types, LoadedVariant | ByDace]]
    _with_structs: ByDace
    """For calls that pass a struct of ctypes."""

    @classmethod
    def make(
        cls, program: DaceProgram, options: Options, *, fallback: bool, recompile: bool | int | None = None
    ) -> StubbedProgram:
        def choose(*args: Any, **kwargs: Any) -> Overload | Callable[..., Any]:
            with OwnErrors():
                return self._choose(args, kwargs)

        self = cls(program.f.__name__, choose)
        self.dace_program = program
        self.fallback_calls = 0
        self._options = options
        self._fallback = fallback
        self._recompile = recompile
        self._variants = []
        _PROGRAMS.add(self)
        self._with_structs = ByDace(self, Watch(()), has_struct=True)
        functools.update_wrapper(self, program.f, ("__doc__", "__module__", "__qualname__"), ())
        self.__signature__ = self._signature
        return self

    def compile(self, *args: Any, **kwargs: Any) -> StubbedProgram:
        """
        Builds the variant for these arguments. A program whose parameters are all annotated needs none. Unlike DaCe's
        method, it returns the program itself.

        Raises TypeError if a parameter without annotation has no argument.
        """
        if mode() == Mode.PYTHON:
            return self
        with OwnErrors(), _PARSING:
            self._variant(self._bind(args, kwargs) if args or kwargs else self._example())
        return self

    def parse(self) -> ParsedVariant:
        """The variant of a program whose parameters are all annotated, parsed but not built."""
        call = self._example()
        with _PARSING:
            args, kwargs, types = self._types(call)
            return parse_variant(self.dace_program, args, kwargs, types, call, self._options)

    def clear(self) -> None:
        """Forgets all variants; the next call parses the program again."""
        with _PARSING:
            self._variants.clear()
        self.forget()

    def _choose(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Overload | Callable[..., Any]:
        if mode() == Mode.PYTHON:
            return python_of(self.dace_program)
        call = self._bind(args, kwargs)
        if (name := next((name for name, value in call.by_name.items() if is_struct(value)), None)) is not None:
            if self._fallback:
                return self._with_structs
            raise TypeError(
                f"Argument '{name}' of program '{self.dace_program.name}' must be an object with the members of its"
                " structure as attributes, not a struct of ctypes, which has addresses without sizes."
            )
        with _PARSING:
            variant = self._variant(call)
        if not isinstance(variant, LoadedVariant):
            return variant
        if mode() == Mode.BUILD:
            registry.stop([variant.entry])
        recompiles = self._limit > 1
        return variant.overload(call, BOUND if recompiles else CHANGED, recompiles=recompiles)

    @property
    def _limit(self) -> int:
        """The most variants of the same types."""
        recompile = settings.recompiles() if self._recompile is None else self._recompile
        return MOST_VARIANTS if recompile is True else max(1, recompile)

    @property
    def _signature(self) -> inspect.Signature:
        return signature_of(self.dace_program)

    def _example(self) -> Arguments:
        """Arguments of the annotated types. Raises TypeError if a parameter has none."""
        return self._bind(*examples(self.dace_program, self._signature))

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        call = Arguments.of(self.dace_program, args, kwargs)
        call.check_complete(self.__name__, self._signature)
        return call

    def _variant(self, call: Arguments) -> LoadedVariant | ByDace:
        args, given, types = self._types(call)
        known = [variant for found, variant in self._variants if _is_same(found, types)]
        changes = [each.change(call) for each in known]
        if None in changes:
            return known[changes.index(None)]
        stubs = [(each, change) for each, change in zip(known, changes, strict=True) if isinstance(each, LoadedVariant)]
        if len(stubs) >= self._limit:
            last, change = stubs[-1]
            if self._limit == 1:
                return last  # whose call is refused
            raise ValueError(
                f"Program '{self.__name__}' has {len(stubs)} variants of these types, none of which fits: the last one"
                f" {change}. Make what changes an argument of the program, or allow more variants:"
                f" recompile={2 * len(stubs)}."
            )
        variant = self._built(args, given, types, call)
        values = {name: copy_of(value) for name, value in types.values.items()}
        self._variants.append((dataclasses.replace(types, values=values), variant))
        return variant

    def _types(self, call: Arguments) -> tuple[tuple[Any, ...], Mapping[str, Any], Types]:
        """The arguments of a call without optional ones that are None, and their types."""
        args, given = call.without_defaults(self._signature)
        return args, given, types_of(self.dace_program, args, given)

    def _built(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], types: Types, call: Arguments
    ) -> LoadedVariant | ByDace:
        try:
            with spans.span("key", self.dace_program.name):
                parsed = parse_variant(self.dace_program, args, kwargs, types, call, self._options)
            return build_variant(parsed, types, call)
        except (SignatureError, PlanError) as error:
            if not self._fallback or isinstance(error, UsedUpError):
                raise
            tried = sum(isinstance(each, ByDace) and _is_same(found, types) for found, each in self._variants)
            return ByDace(self, self._watch(call), again=self._watch if tried + 1 >= MOST_VARIANTS else None)

    def _watch(self, call: Arguments) -> Watch:
        """What the program reads now, for a call that no stub can carry."""
        with _PARSING:
            return watch_of(self.dace_program, self._types(call)[2], call)

    # What users ask of a program of DaCe's.

    @property
    def f(self) -> FunctionType:
        """The function that the program was made of."""
        return self.dace_program.f  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """DaCe's name of the program, with its module and class."""
        return self.dace_program.name  # type: ignore[no-any-return]

    @property
    def argnames(self) -> list[str]:
        """The names of the parameters without `self`."""
        return self.dace_program.argnames  # type: ignore[no-any-return]

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the function, with `self`."""
        return self.dace_program.signature  # type: ignore[no-any-return]

    @property
    def methodobj(self) -> Any:
        """The object whose method it is."""
        return self.dace_program.methodobj

    def to_sdfg(self, *args: Any, **kwargs: Any) -> dace.SDFG:
        """The SDFG that DaCe makes for these arguments, with the globals as they are now."""
        with _PARSING:
            refresh(self.dace_program)
            return self.dace_program.to_sdfg(*args, **kwargs)

    if not TYPE_CHECKING:  # which would allow every name

        def __getattr__(self, name: str) -> Any:
            hint = (
                f" DaCe's program has it: '.dace_program.{name}'."
                if hasattr(vars(self).get("dace_program"), name)
                else ""
            )
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}'.{hint}", name=name, obj=self
            )

    # What DaCe asks of an object that another of its programs calls.

    def __sdfg__(self, *args: Any, **kwargs: Any) -> dace.SDFG:
        return self.dace_program.to_sdfg(*args, **kwargs, simplify=False)  # as `parse_program` does for the caller

    def __sdfg_signature__(self) -> tuple[Any, Any]:
        return self.dace_program.__sdfg_signature__()  # type: ignore[no-any-return]

    def __sdfg_closure__(self, reevaluate: dict[str, str] | None = None) -> dict[str, Any]:
        return self.dace_program.__sdfg_closure__(reevaluate)  # type: ignore[no-any-return]

    def closure_resolver(self, constant_args: Any, given_args: Any, parent_closure: Any = None) -> Any:
        return self.dace_program.closure_resolver(constant_args, given_args, parent_closure)

    def __reduce__(self) -> str:
        """As a function, it is pickled by its name, and a copy is the object itself."""
        return self.__qualname__

    def __repr__(self) -> str:
        count = len(self._variants)
        return f"<gtstub program '{self.__name__}' of DaCe ({count} variant{'' if count == 1 else 's'})>"


def _is_same(a: Types, b: Types) -> bool:
    return (
        a.given == b.given
        and a.descriptors.keys() == b.descriptors.keys()
        and all(_is_equivalent(descriptor, b.descriptors[name]) for name, descriptor in a.descriptors.items())
        and a.values.keys() == b.values.keys()
        and all(same(value, b.values[name]) for name, value in a.values.items())
    )


def _is_equivalent(a: dace.data.Data, b: dace.data.Data) -> bool:
    return type(a) is type(b) and a.to_json() == b.to_json()


class StubbedMethod:
    """
    A method that is a DaCe program, in a class: it gives each object a program of its own. As with `dace.method`, an
    object whose method was used lives as long as its class.
    """

    def __init__(self, make: Callable[[Any], StubbedProgram]) -> None:
        self._make = make
        self._of: dict[int, StubbedProgram] = {}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if id(instance) not in self._of:
            self._of[id(instance)] = self._make(instance)
        return self._of[id(instance)]


def program(
    function: Any = None,
    *,
    fallback: bool = False,
    recompile: bool | int | None = None,
    build_type: str = "Release",
    dace_config: Mapping[str, Any] = NOTHING,
    bounds: bool = True,
    **options: Any,
) -> Any:
    """
    Calls a DaCe program through stubs that gtstub generates. To be used as a decorator, or as a function.

    - `function`: a function, or what `@dace.program` or `@dace.method` has made of it.
    - `fallback`: what no stub can carry is called through DaCe; `fallback_calls` counts these calls. Otherwise it is
      refused when it is built.
    - `recompile`: if a value that was compiled in has changed, the program is compiled anew, for at most this number of
      variants of the same types, or 8 if it is True. Otherwise the call is refused. GTSTUB_RECOMPILE=1 is the default
      for programs that do not say.
    - `build_type` is CMake's, `dace_config` overrides settings of the DaCe configuration (docs/dace-config.md), and
      without `bounds`, the elements that the program accesses are not checked (docs/refusals.md).
    - `options`: the arguments of `dace.program`, if `function` is a plain function.

    Returns a `StubbedProgram`, or, for a method, an object that gives each instance of its class one.
    """
    if function is None:
        return lambda f: program(
            f,
            fallback=fallback,
            recompile=recompile,
            build_type=build_type,
            dace_config=dace_config,
            bounds=bounds,
            **options,
        )
    how = Options(build_type, dict(dace_config), bounds)
    if recompile is not None and recompile < 0:
        raise ValueError(f"'recompile' is a number of variants, not {recompile}.")
    how.build("cpu").ingredients  # noqa: B018  raises ConfigError
    if isinstance(function, FunctionType):
        is_method = "." in function.__qualname__.rpartition("<locals>.")[2]  # in a class, whose body is being executed
        function = (dace.method if is_method else dace.program)(**options)(function)
    elif options:
        raise TypeError(f"Pass {', '.join(map(repr, options))} to dace.program(), which has made this program.")
    if isinstance(function, DaceProgram):
        return StubbedProgram.make(function, how, fallback=fallback, recompile=recompile)
    if hasattr(function, "wrapped") and hasattr(function, "__get__"):  # dace.method
        return StubbedMethod(
            lambda instance: StubbedProgram.make(
                function.__get__(instance, type(instance)), how, fallback=fallback, recompile=recompile
            )
        )
    raise TypeError(f"gtstub.program() takes a function or a DaCe program, not '{type(function).__name__}'.")
