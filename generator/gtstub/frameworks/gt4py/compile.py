"""`gtstub.compile()`: binds arguments of a gt4py program and compiles its variants."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dace.frontend.python.parser import DaceProgram
from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.otf import runners

from gtstub import settings
from gtstub.backends.choice import Tag, choose
from gtstub.backends.tables import load_tables
from gtstub.cache.lookup import Request
from gtstub.errors import ConfigError
from gtstub.frameworks.dace.program import StubbedProgram
from gtstub.frameworks.dace.program import program as dace_program
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.argument_types import parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef, versions
from gtstub.frameworks.gt4py.target import CompiledTarget, EmbeddedTarget
from gtstub.programs import registry
from gtstub.programs.compiled import Builder, CompiledProgram, Interface, product
from gtstub.settings import Mode, mode
from gtstub.signature.model import ProgramSignature, SdfgSignature
from gtstub.toolchain.arch import arch

NOTHING: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The keyword arguments of `compile`."""

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
        """The names of all parameters with values, in all tables."""
        tables = (self.horizontal_sizes, self.vertical_sizes, self.bound_args, self.bound_static_args, self.static_args)
        return itertools.chain.from_iterable(tables)

    @property
    def bound(self) -> dict[str, Any]:
        return {**self.horizontal_sizes, **self.vertical_sizes, **self.bound_args, **self.bound_static_args}

    @property
    def static_values(self) -> dict[str, Sequence[Any]]:
        """The list of values of each static argument."""
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
) -> Any:
    """
    Compiles a gt4py program or field operator, and binds some of its arguments. Or compiles a DaCe program whose
    parameters are all annotated; it takes none of these options, and comes back as from `gtstub.program`.

    Returns a `CompiledProgram`, a callable that takes the unbound parameters by position or keyword. gtstub builds all
    variants, the product of the lists in `static_args`, in parallel. The first call of a variant waits for its build,
    as does `gtstub.wait_for_compilation()`, or this function if GTSTUB_WAIT=1 is set. `CompiledProgram.compile` adds
    variants.

    - `horizontal_sizes`: scalars to bind. With `static_horizontal_sizes` they are also compiled in, and ranks of a
      parallel run with different sizes compile their own variants.
    - `vertical_sizes`, `bound_static_args`: scalars (or tuples of them) to bind and compile in.
    - `bound_args`: fields and scalars to bind. Their types are checked at once.
    - `static_args`: for each name, the list of values that calls may pass.
    - `backend_tag`: a tag or its name (docs/backends.md), CPU by default; `backend`: a gt4py backend instead of a tag.
    - `offset_provider`: the offset provider to bind, or a list of several; then each call passes one of them.
    - `overridable`: calls may override bound arguments by keyword, as functools.partial allows.

    Raises TypeError or ValueError for arguments that do not fit the program. The code that waits for a build gets the
    errors of the build.
    """
    options = locals().copy()
    del options["program"]
    if isinstance(program, DaceProgram | StubbedProgram):
        return _compile_dace_program(program, CompileOptions(**options))
    target, interface, combinations = _prepare(program, CompileOptions(**options))
    static_value = target.argument_types.static_value
    builder = Builder(static_value, target.start, target.load, runners.reset_default_runner)
    compiled = CompiledProgram.make(interface, builder)
    compiled.add(*combinations)
    if settings.waits():
        compiled.wait()
    registry.register(compiled)  # Not before: a caller that has handled an error must not get it again.
    return compiled


def _compile_dace_program(program: DaceProgram | StubbedProgram, options: CompileOptions) -> StubbedProgram:
    if options != CompileOptions():
        raise TypeError("A DaCe program takes no options of 'gtstub.compile()': pass them to 'gtstub.program()'.")
    stubbed = program if isinstance(program, StubbedProgram) else dace_program(program)
    return stubbed.compile()


def requests(program: Any, options: CompileOptions) -> list[Request]:
    """
    The entries that `compile` would look up with these options. Compiles nothing.

    Raises ConfigError for a backend of gt4py's own, and the errors of `compile`.
    """
    return [backend.request(concrete) for backend, concrete in _concrete(program, options)]


def signatures(program: Any, options: CompileOptions) -> list[tuple[ProgramSignature, SdfgSignature]]:
    """Both signatures of each variant that `compile` would build with these options. Lowers the variants only."""
    return [backend.signatures(concrete) for backend, concrete in _concrete(program, options)]


def sources(program: Any, options: CompileOptions) -> list[Mapping[str, Any]]:
    """
    The ingredients of the signatures of each variant that `compile` would build: the source of the program and of all
    that it uses, static values, tables, and the versions of gt4py and DaCe. Lowers nothing.
    """
    of_others = {name: version for name, version in versions().items() if name in ("gt4py", "dace")}
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
                f"Program '{program.__name__}' has {what} of gt4py's own: compile it without them, and pass bound and"
                " static arguments to 'gtstub.compile()'."
            )


def _target(program: Any, options: CompileOptions) -> EmbeddedTarget | CompiledTarget:
    backend, tag = options.backend, options.backend_tag
    if backend is not None and (tag is not None or not isinstance(backend, gtx_backend.Backend)):
        raise TypeError(f"Program '{program.__name__}' needs a 'backend_tag', or a backend of gt4py's as 'backend'.")
    if mode() == Mode.PYTHON:
        return EmbeddedTarget(program)
    if backend is None:
        tag = Tag(tag or Tag.CPU)
        choice = choose(program.__name__, tag, arch(tag.device), load_tables())
        backend = make_chosen_backend(choice, types=parameter_types(program))
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
