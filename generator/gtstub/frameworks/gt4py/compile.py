"""`gtstub.compile()` for gt4py's programs: their types, their static arguments, and gt4py's own compilation jobs."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.ffront.decorator import Program
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import arguments, compilation_tasks, runners
from gt4py.next.otf.definitions import ConcreteProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub import _host, mode, ranks
from gtstub.backends.choice import Tag, choose, load_tables
from gtstub.building import pending
from gtstub.cache.lookup import Request
from gtstub.errors import CacheError, ConfigError
from gtstub.frameworks.gt4py import choice, fingerprint
from gtstub.frameworks.gt4py.argument_types import ArgumentTypes, parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend, lowered_signatures
from gtstub.program import registry
from gtstub.program.compiled import Builder, CompiledProgram, Interface, product
from gtstub.signature.model import ProgramSignature, SdfgSignature
from gtstub.toolchain.arch import arch

NOTHING: Mapping[str, Any] = {}


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
    in `static_args`, are built in parallel; the first call of one waits for it, or `gtstub.wait_for_compilation()`, or
    this function itself where GTSTUB_WAIT=1 is set. `CompiledProgram.compile` adds variants later.

    - `horizontal_sizes`: scalars that are bound; static with `static_horizontal_sizes`, by which ranks of a parallel
      run whose sizes differ each compile variants of their own.
    - `vertical_sizes`, `bound_static_args`: scalars (or tuples of them) that are bound and compiled in.
    - `bound_args`: fields and scalars that are bound. They are checked here.
    - `static_args`: for each name the list of values that calls may pass.
    - `backend_tag`: a tag or its name (docs/backends.md), CPU by default; `backend`: a backend of gt4py's instead.
    - `offset_provider`: bound. Where it is a list of several, each call passes one of them.
    - `overridable`: a call may pass bound arguments too, by keyword, as functools.partial allows.

    Raises TypeError or ValueError for arguments that do not fit the program; what goes wrong in a build is raised by
    whoever waits for it.
    """
    plan = _plan(
        program,
        horizontal_sizes,
        vertical_sizes,
        bound_args,
        bound_static_args,
        static_args,
        backend_tag,
        backend,
        offset_provider,
        static_horizontal_sizes,
        overridable,
    )
    target = plan.target
    builder = Builder(plan.static_value, target.start, target.load, runners.reset_default_runner)
    compiled = CompiledProgram.make(plan.interface, builder)
    compiled.add(*plan.combinations)
    if os.environ.get("GTSTUB_WAIT", "0") not in ("", "0"):
        compiled.wait()
    return compiled


def requests(program: Any, **arguments: Any) -> list[Request]:
    """
    The entries that `compile` would look for, given the same arguments; nothing is compiled.

    Raises ConfigError where a backend of gt4py's would be used, and what `compile` raises.
    """
    return [backend.request(concrete) for backend, concrete in _variants(program, arguments)]


def signatures(program: Any, **arguments: Any) -> list[tuple[ProgramSignature, SdfgSignature]]:
    """Both signatures of what `compile` would build, given the same arguments; it is lowered, not built."""
    return [lowered_signatures(concrete, backend) for backend, concrete in _variants(program, arguments)]


def sources(program: Any, **arguments: Any) -> list[Mapping[str, Any]]:
    """
    What the signatures of what `compile` would build are made of, given the same arguments: the program's own text and
    all that it uses, static values, tables, and the versions of what lowers it. Nothing is lowered.
    """
    of_others = {name: version for name, version in fingerprint.versions().items() if name != "gtstub"}
    return [
        {**fingerprint.read(concrete).ingredients, "versions": of_others}
        for _, concrete in _variants(program, arguments)
    ]


def _variants(program: Any, arguments: Mapping[str, Any]) -> Iterator[tuple[StubBackend, ConcreteProgramDef[Any, Any]]]:
    plan = _plan(program, **arguments)
    target = plan.target
    if not isinstance(target, _CompiledTarget) or not isinstance(target.backend, StubBackend):
        raise ConfigError(f"Program '{program.__name__}' gets a backend of gt4py's, which has no cache entries.")
    for static in plan.combinations:
        for provider in plan.interface.offset_providers:
            yield target.backend, target.concrete(static, provider)


@dataclasses.dataclass(frozen=True)
class _Plan:
    """What is to be compiled."""

    target: _EmbeddedTarget | _CompiledTarget
    interface: Interface
    combinations: Sequence[Mapping[str, Any]]
    static_value: Callable[[str, Any], Any]


def _plan(
    program: Any,
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
) -> _Plan:
    _check_program(program)
    if backend is not None and (backend_tag is not None or not isinstance(backend, gtx_backend.Backend)):
        raise TypeError(f"Program '{program.__name__}' needs a 'backend_tag', or a backend of gt4py's as 'backend'.")
    target: _EmbeddedTarget | _CompiledTarget
    if mode.current() == mode.Mode.PYTHON:
        target = _EmbeddedTarget(program)
    elif backend is not None:
        target = _CompiledTarget(program, backend)
    else:
        tag = Tag(backend_tag or Tag.CPU)
        target = _CompiledTarget(program, choice.make(choose(program.__name__, tag, arch(tag.device), load_tables())))
    providers = _providers(target.name, offset_provider)
    given = (horizontal_sizes, vertical_sizes, bound_args, bound_static_args, static_args)
    target.check_names(given)
    statics = {**vertical_sizes, **bound_static_args}
    if static_horizontal_sizes:
        statics |= horizontal_sizes
    types = ArgumentTypes(target.name, target.types)
    choices = {**{name: [value] for name, value in statics.items()}, **static_args}
    combinations = product(target.name, choices, types.static_value)
    bound = {**horizontal_sizes, **vertical_sizes, **bound_args, **bound_static_args}
    for name, value in bound.items():
        types.check(name, value)

    interface = Interface(
        name=target.name,
        signature=target.signature,
        doc=target.definition.__doc__,
        bound=bound,
        overridable=overridable,
        statics=tuple(scalar for name in target.types if name in choices for scalar in types.static_scalars(name)),
        offset_providers=providers,
    )
    return _Plan(target, interface, combinations, types.static_value)


def _check_program(program: Any) -> None:
    if not hasattr(program, "definition_stage") or not hasattr(program, "__gt_type__"):
        raise TypeError(
            f"Argument 'program' of 'compile' must be a gt4py program or field operator,"
            f" not '{type(program).__name__}'."
        )
    options = program.compilation_options
    for what, said in (
        ("bound arguments", getattr(program, "bound_args", None)),
        ("static parameters", options.static_params),
        ("static domains", options.static_domains),
    ):
        if said:
            raise TypeError(
                f"Program '{program.__name__}' has {what} of gt4py's own: compile the program without them, and say"
                " here what is bound and what is static."
            )


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


@dataclasses.dataclass(frozen=True)
class _Target:
    """What callers of a program pass."""

    program: Any

    @property
    def name(self) -> str:
        return str(self.program.__name__)

    @property
    def definition(self) -> Callable[..., Any]:
        return cast(Callable[..., Any], self.program.definition_stage.definition)

    @functools.cached_property
    def types(self) -> Mapping[str, Any]:
        """The parameters in order, with their types."""
        return parameter_types(self.program)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        defined = inspect.signature(self.definition).parameters
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    annotation=defined[name].annotation if name in defined else inspect.Parameter.empty,
                )
                for name in self.types
            ],
            return_annotation=None,
        )

    def check_names(self, given: Sequence[Mapping[str, Any]]) -> None:
        seen: set[str] = set()
        for name in itertools.chain.from_iterable(given):
            if name not in self.types:
                raise TypeError(f"Program '{self.name}' has no parameter '{name}'; it has {', '.join(self.types)}.")
            if name in seen:
                raise TypeError(f"Argument '{name}' of program '{self.name}' was given twice.")
            seen.add(name)


@dataclasses.dataclass(frozen=True)
class _EmbeddedTarget(_Target):
    """A program that gt4py runs in Python."""

    def start(self, *_: Mapping[str, Any]) -> concurrent.futures.Future[Any]:
        return registry.done(None)

    def load(self, _: None) -> Callable[..., None]:
        embedded = self.program.with_backend(None)
        if isinstance(self.program, Program):
            return cast(Callable[..., None], embedded)

        def call(*args: Any, offset_provider: common.OffsetProvider) -> None:
            *inputs, out = args
            embedded(*inputs, out=out, offset_provider=offset_provider)

        return call


@dataclasses.dataclass(frozen=True)
class _CompiledTarget(_Target):
    """A program with its backend."""

    backend: gtx_backend.Backend[Any]

    def concrete(self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]) -> ConcreteProgramDef[Any, Any]:
        """The program with what is known of its arguments."""
        contexts = {}
        if static:
            descriptors = {name: arguments.StaticArg(value) for name, value in static.items()}
            for name, descriptor in descriptors.items():
                descriptor.validate(name, self.types[name])
            contexts = {arguments.StaticArg: {name: descriptors.get(name) for name in self.types}}
        compile_time_args = arguments.CompileTimeArgs(
            args=tuple(self.types.values()),
            kwargs={},
            offset_provider=offset_provider,
            column_axis=None,
            argument_descriptor_contexts=contexts,
        )
        return ConcreteProgramDef(self.program.definition_stage, compile_time_args)

    def start(self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]) -> concurrent.futures.Future[Any]:
        """
        The entry, if it is in the cache. Else the program is lowered here, and gt4py's runner does the rest: in
        processes, unless gt4py is told other.
        """
        concrete = self.concrete(static, offset_provider)

        def submit() -> concurrent.futures.Future[Any]:
            task = compilation_tasks.make_compilation_task(self.backend, concrete.data, concrete.args)
            return cast("concurrent.futures.Future[Any]", runners.get_default_runner().submit(task))

        if not isinstance(self.backend, StubBackend):
            if mode.current() == mode.Mode.RUN:
                raise CacheError(
                    f"Program '{self.name}' has no entry in gtstub's cache, because '{self.backend.name}' is a backend"
                    " of gt4py's own, and mode 'Run' builds nothing: use a backend of gtstub's, or another mode."
                )
            return submit()
        request = self.backend.request(concrete)
        if (artifact := request.find()) is not None:
            return registry.done(artifact)
        return pending.start(request.cache, request.key, ranks.current(), submit)

    def load(self, artifact: Any) -> Callable[..., None]:
        executable = self.backend.load_artifact(artifact)
        if isinstance(executable, _host.Program):
            # gt4py's own front door, which would say whose metrics these are, is not there.
            executable.set_metrics(
                vars(metrics.config),
                "COLLECT_METRICS_LEVEL",
                metrics.PERFORMANCE,
                functools.partial(_sample, self.name),
            )
            return executable
        types = ts.FunctionType(pos_only_args=[], pos_or_kw_args=self.types, kw_only_args={}, returns=ts.VoidType())
        extract = arguments.make_primitive_value_args_extractor(types)
        if extract is None:
            return cast(Callable[..., None], executable)

        def call(*args: Any, offset_provider: common.OffsetProvider) -> None:
            executable(*extract(*args)[0], offset_provider=offset_provider)

        return call


def _sample(name: str, seconds: float) -> None:
    metrics.sources[name].metrics[metrics.COMPUTE_METRIC].add_sample(seconds)
