"""gt4py as a `Framework`: binds arguments of a program and compiles its variants."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from gt4py.next import backend as gtx_backend
from gt4py.next.otf import runners

from gtstub import settings
from gtstub.entries.building.pending import hurry
from gtstub.entries.cache.lookup import Request
from gtstub.entries.toolchain.arch import arch
from gtstub.errors import ConfigError, GtstubError
from gtstub.frameworks.backends.choice import Tag, choose
from gtstub.frameworks.backends.tables import load_tables
from gtstub.frameworks.framework import CompileOptions
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.argument_types import parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef, number_of_nodes, versions
from gtstub.frameworks.gt4py.target import CompiledTarget, EmbeddedTarget
from gtstub.programs import registry
from gtstub.programs.compiled import Builder, CompiledProgram, Interface, product
from gtstub.settings import Mode, mode
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature

NAME = "gt4py"


def is_program(found: Any) -> bool:
    return hasattr(found, "definition_stage") and hasattr(found, "__gt_type__")


def compile(program: Any, options: CompileOptions) -> CompiledProgram:  # noqa: A001  gt4py's own word for it
    target, interface, combinations = _prepare(program, options)
    static_value = target.argument_types.static_value
    builder = Builder(static_value, target.start, target.load, runners.reset_default_runner)
    compiled = CompiledProgram.make(interface, builder)
    with fingerprint.one_reading():
        compiled.add(*combinations)
    if settings.waits():
        compiled.wait()
    registry.register(compiled)  # Not before: a caller that has handled an error must not get it again.
    return compiled


def requests(program: Any, options: CompileOptions) -> list[Request]:
    """
    The entries that `compile` would look up with these options. Compiles nothing.

    Raises ConfigError for a backend of gt4py's own, and the errors of `compile`.
    """
    with fingerprint.one_reading():
        return [backend.request(concrete) for backend, concrete in _concrete(program, options)]


def lower(program: Any, options: CompileOptions) -> int:
    return sum(number_of_nodes(backend.lowering.lower_ahead(each)) for backend, each in _concrete(program, options))


def build(program: Any, options: CompileOptions) -> None:
    for variant in compile(program, options).variants:
        hurry(variant.result)
        variant.result.result()


def signatures(
    program: Any, static: Mapping[str, Any], offset_provider: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[ProgramSignature, SdfgSignature]:
    """Both signatures of a program with values of scalar parameters. `options` are those of `make_backend`."""
    known = inspect.signature(make_backend).parameters
    for option in options:
        if option not in known:
            raise GtstubError(f"The backend has no option '{option}'. Its options: {', '.join(map(repr, known))}.")
    backend = make_backend(**{"gpu": False, **options})
    if backend is None:
        raise GtstubError("Mode 'Python' compiles nothing: unset GTSTUB_MODE to extract signatures.")
    return CompiledTarget(program, backend).signatures(static, offset_provider)


def signatures_of_variants(program: Any, options: CompileOptions) -> list[tuple[ProgramSignature, SdfgSignature]]:
    """Both signatures of each variant that `compile` would build with these options. Lowers the variants only."""
    return [backend.signatures(concrete) for backend, concrete in _concrete(program, options)]


def sources(program: Any, options: CompileOptions) -> list[Mapping[str, Any]]:
    """
    The ingredients of the signatures of each variant that `compile` would build: the source of the program and of all
    that it uses, static values, tables, and the versions of gt4py and DaCe. Lowers nothing.
    """
    of_others = {name: version for name, version in versions().items() if name in ("gt4py", "dace")}
    with fingerprint.one_reading():
        return [
            {
                **fingerprint.read(backend.lowering.parsed(concrete), fingerprint.names(concrete.data)).ingredients,
                "versions": of_others,
            }
            for backend, concrete in _concrete(program, options)
        ]


def _concrete(program: Any, options: CompileOptions) -> Iterator[tuple[StubBackend, ConcreteProgramDef[Any, Any]]]:
    """Each variant, with the backend that builds it."""
    target, interface, combinations = _prepare(program, options)
    if not isinstance(target, CompiledTarget) or not isinstance(target.backend, StubBackend):
        raise ConfigError(f"Program '{program.__name__}' uses a backend of gt4py's own, which has no cache entries.")
    for static in combinations:
        for provider in interface.offset_providers:
            yield target.backend, target.concrete(static, provider)


def _prepare(
    program: Any, options: CompileOptions
) -> tuple[EmbeddedTarget | CompiledTarget, Interface, list[dict[str, Any]]]:
    """Checks all arguments; returns also the combination of static arguments of each variant."""
    _check_program(program)
    target = _target(program, options)
    providers = _providers(target.name, options.offset_provider)
    target.check_names(options.names)
    types, choices, bound = target.argument_types, options.static_values, options.bound
    combinations = product(target.name, choices, types.static_value)
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
    return target, interface, combinations


def _check_program(program: Any) -> None:
    options = program.compilation_options
    for what, given in (
        ("bound arguments", getattr(program, "bound_args", None)),
        ("static parameters", options.static_params),
        ("static domains", options.static_domains),
    ):
        if given:
            raise TypeError(
                f"Program '{program.__name__}' has {what} of gt4py's own: compile it without them, and pass bound and"
                " static arguments to 'gtstub.compile()'."
            )


def _target(program: Any, options: CompileOptions) -> EmbeddedTarget | CompiledTarget:
    backend, tag = options.backend, options.backend_tag
    if backend is not None and not isinstance(backend, gtx_backend.Backend):
        raise TypeError(f"Program '{program.__name__}' needs a 'backend_tag', or a backend of gt4py's as 'backend'.")
    if backend is not None and tag is not None:
        raise TypeError(f"Program '{program.__name__}' was given a 'backend_tag' and a 'backend': pass one of them.")
    if mode() == Mode.PYTHON:
        return EmbeddedTarget(program)
    if backend is None:
        tag = Tag(tag or Tag.CPU)
        choice = choose(program.__name__, tag, arch(tag.device), load_tables())
        backend = make_chosen_backend(choice, types=parameter_types(program))
    varying = frozenset(name for name, values in options.static_values.items() if _has_several(values))
    return CompiledTarget(program, backend, varying)


def _has_several(values: Any) -> bool:
    return isinstance(values, list | tuple | range) and len(values) > 1


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
