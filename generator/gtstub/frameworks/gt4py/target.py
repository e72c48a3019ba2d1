"""The targets of `gtstub.compile()`: a gt4py program with a backend, or embedded in Python."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.ffront.decorator import Program
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import arguments, compilation_tasks, runners
from gt4py.next.type_system import type_specifications as ts

from gtstub import _host, ranks
from gtstub.entries.building.pending import done, start
from gtstub.entries.building.progress import builds
from gtstub.errors import CacheError, SignatureError
from gtstub.frameworks.gt4py.argument_types import ArgumentTypes, parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend, collect_metrics
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.frameworks.gt4py.stages import RequestedArgs
from gtstub.frameworks.gt4py.zeros import BothZeros
from gtstub.programs import registry
from gtstub.programs.compiled import label_of
from gtstub.settings import Mode, mode
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


@dataclasses.dataclass(frozen=True)
class Target:
    """A program and its parameters."""

    program: Any

    @property
    def name(self) -> str:
        return str(self.program.__name__)

    @property
    def definition(self) -> Callable[..., Any]:
        return cast(Callable[..., Any], self.program.definition_stage.definition)

    @functools.cached_property
    def types(self) -> Mapping[str, Any]:
        """The types of the parameters, in order."""
        return parameter_types(self.program)

    @property
    def argument_types(self) -> ArgumentTypes:
        return ArgumentTypes(self.name, self.types)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind, annotation=str(type_)) for name, type_ in self.types.items()]
        return inspect.Signature(parameters, return_annotation=None)

    def check_names(self, given: Iterable[str]) -> None:
        """Raises TypeError for a name that is not a parameter, or that occurs twice."""
        for name, count in Counter(given).items():
            if name not in self.types:
                raise TypeError(f"Program '{self.name}' has no parameter '{name}'; it has {', '.join(self.types)}.")
            if count > 1:
                raise TypeError(f"Argument '{name}' of program '{self.name}' was given twice.")


@dataclasses.dataclass(frozen=True)
class EmbeddedTarget(Target):
    """A program that gt4py executes embedded in Python."""

    def start(self, *_: Mapping[str, Any]) -> concurrent.futures.Future[Any]:
        return done(None)

    def load(self, _: None) -> Callable[..., None]:
        embedded = self.program.with_backend(None)
        if isinstance(self.program, Program):
            return cast(Callable[..., None], embedded)

        def call(*args: Any, offset_provider: common.OffsetProvider) -> None:
            *inputs, out = args
            embedded(*inputs, out=out, offset_provider=offset_provider)

        return call


@dataclasses.dataclass(frozen=True)
class CompiledTarget(Target):
    """A program with its backend. Messages name the values of the `varying` arguments of a variant."""

    backend: gtx_backend.Backend[Any]
    varying: frozenset[str] = frozenset()

    def label(self, static: Mapping[str, Any]) -> str:
        values = label_of({name: value for name, value in static.items() if name in self.varying})
        return f"{self.name} ({values})" if values else self.name

    def concrete(self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]) -> ConcreteProgramDef[Any, Any]:
        """The program with its compile-time arguments: parameter types, static values, and the offset provider."""
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

    def signatures(
        self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]
    ) -> tuple[ProgramSignature, SdfgSignature]:
        """Both signatures of the program with the static values of scalar parameters, lowered but not built."""
        for name in static:
            if not isinstance(self.types.get(name), ts.ScalarType):
                raise SignatureError(f"Program '{self.name}' has no scalar parameter '{name}' to be static.")
        assert isinstance(self.backend, StubBackend)
        exact = {name: self.argument_types.static_value(name, value) for name, value in static.items()}
        return self.backend.signatures(self.concrete(exact, offset_provider))

    def start(self, static: Mapping[str, Any], offset_provider: Mapping[str, Any]) -> concurrent.futures.Future[Any]:
        """
        Finds the entry in the cache, or lowers the program here and submits the build to gt4py's runner, which by
        default uses worker processes.
        """
        concrete = self.concrete(static, offset_provider)

        def submit(args: arguments.CompileTimeArgs) -> concurrent.futures.Future[Any]:
            task = compilation_tasks.make_compilation_task(self.backend, concrete.data, args)
            return cast("concurrent.futures.Future[Any]", runners.get_default_runner().submit(task))

        if not isinstance(self.backend, StubBackend):
            if mode() == Mode.RUN:
                raise CacheError(
                    f"Program '{self.name}' has no entry in gtstub's cache, because '{self.backend.name}' is a backend"
                    " of gt4py's own, and mode 'Run' builds nothing: use a gtstub backend, or another mode."
                )
            build = submit(concrete.args)
            builds.follow(build, build, self.label(static), is_own=True)
            return build
        requested = self.backend.lowering.requested(concrete)
        if (entry := requested.request.find()) is not None:
            return done(entry)
        label = self.label(static)
        args = RequestedArgs(**vars(concrete.args), requested=requested, label=label)
        return start(requested.request.cache, requested.request.key, ranks.current(), lambda: submit(args), label)

    def load(self, artifact: Any) -> Callable[..., None]:
        executable = self.backend.load_artifact(artifact)
        # The `CompiledProgram` counts its calls, and tells zeros apart.
        while isinstance(executable, registry.SettingUp | BothZeros):
            executable = executable.program
        if isinstance(executable, _host.Program):
            # A call bypasses gt4py's own entry point, which would select the source of the metrics.
            collect_metrics(executable, functools.partial(_sample, self.name))
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
