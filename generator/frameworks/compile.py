"""`gtstub.compile()` for gt4py's programs: their types, their static arguments, and gt4py's own compilation jobs."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import enum
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import arguments, compilation_tasks, runners
from gt4py.next.type_system import type_specifications as ts
from gt4py.next.type_system import type_translation

from gtstub import _host
from gtstub.arch import arch
from gtstub.backends import Tag, choose, load_tables
from gtstub.compiled import Builder, CompiledProgram, Interface, StaticScalar
from gtstub.frameworks import backends
from gtstub.signature.model import DType

NOTHING: Mapping[str, Any] = {}


def compile(  # noqa: A001  gt4py's own word for it
    program: Any,
    *,
    horizontal_sizes: Mapping[str, Any] = NOTHING,
    vertical_sizes: Mapping[str, Any] = NOTHING,
    bound_args: Mapping[str, Any] = NOTHING,
    bound_static_args: Mapping[str, Any] = NOTHING,
    static_args: Mapping[str, Sequence[Any]] = NOTHING,
    backend_tag: Tag | str = Tag.CPU,
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
    - `backend_tag`: a tag or its name (docs/backends.md); `backend`: a backend of gt4py's instead.
    - `offset_provider`: bound. Where it is a list of several, each call passes one of them.
    - `overridable`: a call may pass bound arguments too, by keyword, as functools.partial allows.

    Raises TypeError or ValueError for arguments that do not fit the program; what goes wrong in a build is raised by
    whoever waits for it.
    """
    if backend is None:
        backend = backends.make(choose(program.__name__, backend_tag, arch(Tag(backend_tag).device), load_tables()))
    target = _Target(program, backend)
    given = (horizontal_sizes, vertical_sizes, bound_args, bound_static_args, static_args)
    target.check_names(given)
    statics = {**vertical_sizes, **bound_static_args}
    if static_horizontal_sizes:
        statics |= horizontal_sizes
    baked = {name: target.static_value(name, value) for name, value in statics.items()}
    choices = {name: [target.static_value(name, value) for value in values] for name, values in static_args.items()}
    for name, values in choices.items():
        if not values:
            raise ValueError(f"Static argument '{name}' of program '{target.name}' needs at least one value.")
    bound = {**horizontal_sizes, **vertical_sizes, **bound_args, **bound_static_args}
    for name, value in bound.items():
        target.check_argument(name, target.types[name], value)

    interface = Interface(
        name=target.name,
        signature=target.signature,
        doc=target.definition.__doc__,
        bound=bound,
        overridable=overridable,
        statics=tuple(
            scalar
            for name in target.types
            if name in baked or name in choices
            for scalar in target.static_scalars(name)
        ),
        offset_providers=(offset_provider,) if isinstance(offset_provider, Mapping) else tuple(offset_provider),
    )
    compiled = CompiledProgram.make(interface, Builder(target.start, target.load, runners.reset_default_runner))
    for chosen in itertools.product(*choices.values()):
        compiled.add({**baked, **dict(zip(choices, chosen, strict=True))})
    if os.environ.get("GTSTUB_WAIT", "0") not in ("", "0"):
        compiled.wait()
    return compiled


@dataclasses.dataclass(frozen=True)
class _Target:
    """A program with its backend."""

    program: Any
    backend: gtx_backend.Backend[Any]

    @property
    def name(self) -> str:
        return str(self.program.__name__)

    @property
    def definition(self) -> Callable[..., Any]:
        return cast(Callable[..., Any], self.program.definition_stage.definition)

    @functools.cached_property
    def types(self) -> Mapping[str, Any]:
        """The parameters in order, with their types."""
        definition = ffront_type_info.type_in_program_context(self.program.__gt_type__()).definition
        types = dict(definition.pos_or_kw_args)
        if any(isinstance(type_, ts.DeferredType) for type_ in types.values()):
            raise TypeError(f"Program '{self.name}' is generic, as scan operators are; wrap it in a field operator.")
        return types

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

    # --- Arguments ----------------------------------------------------------------------------------------------------

    def check_names(self, given: Sequence[Mapping[str, Any]]) -> None:
        seen: set[str] = set()
        for name in itertools.chain.from_iterable(given):
            if name not in self.types:
                raise TypeError(f"Program '{self.name}' has no parameter '{name}'; it has {', '.join(self.types)}.")
            if name in seen:
                raise TypeError(f"Argument '{name}' of program '{self.name}' was given twice.")
            seen.add(name)

    def check_argument(self, path: str, type_: Any, value: Any) -> None:
        """Refuses what a call would refuse as well, as far as types say it."""
        match type_:
            case ts.TupleType() if isinstance(value, tuple) and len(value) == len(type_.types):
                for index, (element, item) in enumerate(zip(type_.types, value, strict=True)):
                    self.check_argument(f"{path}[{index}]", element, item)
            case ts.NamedCollectionType():
                return  # The stub takes anything with the right attributes, or a tuple.
            case ts.ScalarType():
                self.scalar(path, type_, value)
            case ts.FieldType(dims=[]) if not isinstance(value, common.Field):
                self.scalar(path, type_.dtype, value)
            case _:
                found = type_translation.from_value(value) if isinstance(value, common.Field) else type(value).__name__
                if found != type_:
                    raise TypeError(f"Argument '{path}' of program '{self.name}' must be '{type_}', not '{found}'.")

    def static_value(self, name: str, value: Any) -> Any:
        """A static argument in the very types of the program, as gt4py wants it."""
        return self._static(name, self.types[name], value)

    def _static(self, path: str, type_: Any, value: Any) -> Any:
        if isinstance(type_, ts.ScalarType):
            return self.scalar(path, type_, value)
        if isinstance(type_, ts.TupleType) and isinstance(value, tuple) and len(value) == len(type_.types):
            return tuple(
                self._static(f"{path}[{index}]", element, item)
                for index, (element, item) in enumerate(zip(type_.types, value, strict=True))
            )
        raise TypeError(
            f"Argument '{path}' of program '{self.name}' must be a scalar or a tuple of scalars to be static;"
            f" it is '{type_}', and '{type(value).__name__}' was passed."
        )

    def scalar(self, path: str, type_: Any, value: Any) -> Any:
        """A scalar as numpy's scalar of the very type."""
        dtype = type_.kind.name.lower()
        value = value.value if isinstance(value, enum.Enum) else value
        number = np.dtype(dtype).type
        kinds: tuple[type, ...] = (bool, np.bool_) if dtype == "bool" else (int, np.integer)
        if dtype.startswith("float"):
            kinds = (*kinds, float, np.floating)
        if not isinstance(value, kinds) or (dtype != "bool" and isinstance(value, bool)):
            raise TypeError(
                f"Argument '{path}' of program '{self.name}' must be of type '{dtype}', not '{type(value).__name__}'."
            )
        if issubclass(number, np.integer) and not np.iinfo(number).min <= int(cast(int, value)) <= np.iinfo(number).max:
            raise ValueError(f"Argument '{path}' of program '{self.name}' is {value}, which does not fit '{dtype}'.")
        return number(cast(Any, value))

    def static_scalars(self, name: str) -> Iterator[StaticScalar]:
        yield from self._static_scalars(name, name, self.types[name], ())

    def _static_scalars(
        self, name: str, path: str, type_: Any, steps: tuple[tuple[int, int], ...]
    ) -> Iterator[StaticScalar]:
        if isinstance(type_, ts.TupleType):
            for index, element in enumerate(type_.types):
                yield from self._static_scalars(name, f"{path}[{index}]", element, (*steps, (index, len(type_.types))))
            return
        dtype = type_.kind.name.lower()
        assert dtype in get_args(DType)
        yield StaticScalar(name, path, cast(DType, dtype), steps)

    # --- Building ----------------------------------------------------------------------------------------------------

    def start(self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]) -> concurrent.futures.Future[Any]:
        """Lowers the program here, and lets gt4py's runner do the rest: in processes, unless gt4py is told other."""
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
        task = compilation_tasks.make_compilation_task(self.backend, self.program.definition_stage, compile_time_args)
        return cast("concurrent.futures.Future[Any]", runners.get_default_runner().submit(task))

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
