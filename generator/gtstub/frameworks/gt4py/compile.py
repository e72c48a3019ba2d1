"""`gtstub.compile()` for gt4py's programs: which variants it compiles, with which arguments bound."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.otf import runners
from gt4py.next.otf.definitions import ConcreteProgramDef

from gtstub import settings
from gtstub.backends.choice import Tag, choose
from gtstub.backends.tables import load_tables
from gtstub.cache.lookup import Request
from gtstub.errors import ConfigError
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.argument_types import ArgumentTypes
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.frameworks.gt4py.internals import versions
from gtstub.frameworks.gt4py.signatures import lowered_signatures
from gtstub.frameworks.gt4py.target import CompiledTarget, EmbeddedTarget
from gtstub.program.compiled import Builder, CompiledProgram, Interface, product
from gtstub.settings import Mode, mode
from gtstub.signature.model import ProgramSignature, SdfgSignature
from gtstub.toolchain.arch import arch

NOTHING: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The keyword arguments of `compile`, which says what they mean."""

    horizontal_sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vertical_sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bound_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bound_static_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    static_args: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    backend_tag: Tag | str | None = None
    backend: gtx_backend.Backend[Any] | None = None
    offset_provider: common.OffsetProvider | Sequence[common.OffsetProvider] = dataclasses.field(default_factory=dict)
    static_horizontal_sizes: bool = False
    overridable: bool = False

    @property
    def names(self) -> Iterator[str]:
        """All parameters of the program that are given a value or values."""
        tables = (self.horizontal_sizes, self.vertical_sizes, self.bound_args, self.bound_static_args, self.static_args)
        return itertools.chain.from_iterable(tables)

    @property
    def bound(self) -> dict[str, Any]:
        return {**self.horizontal_sizes, **self.vertical_sizes, **self.bound_args, **self.bound_static_args}

    @property
    def static_values(self) -> dict[str, Sequence[Any]]:
        """For each static argument the list of its values."""
        of_sizes = self.horizontal_sizes if self.static_horizontal_sizes else {}
        one = {**of_sizes, **self.vertical_sizes, **self.bound_static_args}
        return {**{name: [value] for name, value in one.items()}, **self.static_args}


def compile(  # noqa: A001  gt4py's own word for it
    program: Any,
    *,
    horizontal_sizes: Mapping[str, Any] = NOTHING,
    vertical_sizes: Mapping[str, Any] = NOTHING,
    bound_args: Mapping[str, Any] = NOTHING,
    bound_static_args: Mapping[str, Any] = NOTHING,
    static_args: Mapping[str, Sequence[Any]] = NOTHING,
    backend_tag: Tag | str | None = None,
    backend: gtx_backend.Backend[Any] | None = None,
    offset_provider: common.OffsetProvider | Sequence[common.OffsetProvider] = NOTHING,
    static_horizontal_sizes: bool = False,
    overridable: bool = False,
) -> CompiledProgram:
    """
    Compiles a gt4py program or field operator, and binds arguments of it.

    Returns a callable that takes the unbound parameters, by position or keyword. All variants, the product of the lists
    in `static_args`, are built in parallel. The first call of a variant waits for it, or
    `gtstub.wait_for_compilation()` does, or this function itself if GTSTUB_WAIT=1 is set. `CompiledProgram.compile`
    adds variants later.

    - `horizontal_sizes`: scalars that are bound. With `static_horizontal_sizes` they are static, and ranks of a
    parallel
      run whose sizes differ compile variants of their own.
    - `vertical_sizes`, `bound_static_args`: scalars (or tuples of them) that are bound and compiled in.
    - `bound_args`: fields and scalars that are bound. They are checked here.
    - `static_args`: for each name the list of values that calls may pass.
    - `backend_tag`: a tag or its name (docs/backends.md), CPU by default; `backend`: a backend of gt4py's instead.
    - `offset_provider`: bound. If it is a list of several, each call passes one of them.
    - `overridable`: a call may pass bound arguments too, by keyword, as functools.partial allows.

    Raises TypeError or ValueError for arguments that do not fit the program. Errors of a build are raised by whoever
    waits for it.
    """
    variants = _variants(
        program,
        CompileOptions(
            horizontal_sizes=horizontal_sizes,
            vertical_sizes=vertical_sizes,
            bound_args=bound_args,
            bound_static_args=bound_static_args,
            static_args=static_args,
            backend_tag=backend_tag,
            backend=backend,
            offset_provider=offset_provider,
            static_horizontal_sizes=static_horizontal_sizes,
            overridable=overridable,
        ),
    )
    target = variants.target
    builder = Builder(variants.static_value, target.start, target.load, runners.reset_default_runner)
    compiled = CompiledProgram.make(variants.interface, builder)
    compiled.add(*variants.combinations)
    if settings.waits():
        compiled.wait()
    return compiled


def requests(program: Any, options: CompileOptions) -> list[Request]:
    """
    The entries that `compile` would look for with these options. Nothing is compiled.

    Raises ConfigError if the backend is one of gt4py's, and what `compile` raises.
    """
    return [backend.request(concrete) for backend, concrete in _concrete(program, options)]


def signatures(program: Any, options: CompileOptions) -> list[tuple[ProgramSignature, SdfgSignature]]:
    """Both signatures of each variant that `compile` would build with these options; it is lowered, not built."""
    return [lowered_signatures(concrete, backend) for backend, concrete in _concrete(program, options)]


def sources(program: Any, options: CompileOptions) -> list[Mapping[str, Any]]:
    """
    What the signatures of each variant that `compile` would build are made of: the program's own text and all that it
    uses, static values, tables, and the versions of what lowers it. Nothing is lowered.
    """
    of_others = {name: version for name, version in versions().items() if name != "gtstub"}
    return [
        {**fingerprint.read(concrete).ingredients, "versions": of_others} for _, concrete in _concrete(program, options)
    ]


def _concrete(program: Any, options: CompileOptions) -> Iterator[tuple[StubBackend, ConcreteProgramDef[Any, Any]]]:
    """Each variant, with the backend that builds it."""
    variants = _variants(program, options)
    target = variants.target
    if not isinstance(target, CompiledTarget) or not isinstance(target.backend, StubBackend):
        raise ConfigError(f"Program '{program.__name__}' gets a backend of gt4py's, which has no cache entries.")
    for static in variants.combinations:
        for provider in variants.interface.offset_providers:
            yield target.backend, target.concrete(static, provider)


@dataclasses.dataclass(frozen=True)
class _Variants:
    """What is to be compiled: a combination of static arguments for each variant."""

    target: EmbeddedTarget | CompiledTarget
    interface: Interface
    combinations: Sequence[Mapping[str, Any]]
    static_value: Callable[[str, Any], Any]


def _variants(program: Any, options: CompileOptions) -> _Variants:
    _check_program(program)
    target = _target(program, options)
    providers = _providers(target.name, options.offset_provider)
    target.check_names(options.names)
    types = ArgumentTypes(target.name, target.types)
    choices = options.static_values
    combinations = product(target.name, choices, types.static_value)
    bound = options.bound
    for name, value in bound.items():
        types.check(name, value)
    interface = Interface(
        name=target.name,
        signature=target.signature,
        doc=target.definition.__doc__,
        bound=bound,
        overridable=options.overridable,
        statics=tuple(scalar for name in target.types if name in choices for scalar in types.static_scalars(name)),
        offset_providers=providers,
    )
    return _Variants(target, interface, combinations, types.static_value)


def _check_program(program: Any) -> None:
    if not hasattr(program, "definition_stage") or not hasattr(program, "__gt_type__"):
        raise TypeError(
            f"Argument 'program' of 'compile' must be a gt4py program or field operator,"
            f" not '{type(program).__name__}'."
        )
    options = program.compilation_options
    for what, given in (
        ("bound arguments", getattr(program, "bound_args", None)),
        ("static parameters", options.static_params),
        ("static domains", options.static_domains),
    ):
        if given:
            raise TypeError(
                f"Program '{program.__name__}' has {what} of gt4py's own: compile the program without them, and say"
                " here what is bound and what is static."
            )


def _target(program: Any, options: CompileOptions) -> EmbeddedTarget | CompiledTarget:
    backend, tag = options.backend, options.backend_tag
    if backend is not None and (tag is not None or not isinstance(backend, gtx_backend.Backend)):
        raise TypeError(f"Program '{program.__name__}' needs a 'backend_tag', or a backend of gt4py's as 'backend'.")
    if mode() == Mode.PYTHON:
        return EmbeddedTarget(program)
    if backend is None:
        tag = Tag(tag or Tag.CPU)
        backend = make_chosen_backend(choose(program.__name__, tag, arch(tag.device), load_tables()))
    return CompiledTarget(program, backend)


def _providers(name: str, given: Any) -> tuple[Mapping[str, Any], ...]:
    providers = tuple(given) if isinstance(given, list | tuple) else (given,)
    for provider in providers:
        if not isinstance(provider, Mapping):
            raise TypeError(
                f"The offset provider of program '{name}' must be a mapping, not '{type(provider).__name__}'."
            )
    if not providers:
        raise TypeError(f"Program '{name}' needs an offset provider, which may be empty: {{}}.")
    return providers
