"""The gt4py plug-in: a backend that calls programs through stubs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from gt4py._core import definitions as core_definitions
from gt4py.next import backend as gtx_backend
from gt4py.next import config
from gt4py.next.ffront import decorator
from gt4py.next.instrumentation import metrics
from gt4py.next.program_processors.runners.dace.workflow import common as dace_workflow

from gtstub import _host, settings
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.lookup import Request, make_request
from gtstub.frameworks.backends.choice import Choice
from gtstub.frameworks.gt4py import fingerprint, options, zeros
from gtstub.frameworks.gt4py.describe import describe
from gtstub.frameworks.gt4py.internals import (
    CompilationArtifact,
    ConcreteProgramDef,
    ExecutableProgram,
    make_dace_backend,
    replace_default_runner,
)
from gtstub.frameworks.gt4py.listing import listed
from gtstub.frameworks.gt4py.parsing import Parsing, uncached
from gtstub.frameworks.gt4py.runner import FindingRunner
from gtstub.frameworks.gt4py.workflow import (
    FindingTransforms,
    KeepingLowering,
    SigningTranslation,
    StubBindings,
    StubCompilation,
    StubWorkflow,
)
from gtstub.programs import registry
from gtstub.settings import Mode, cache_max_size, mode
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature

if TYPE_CHECKING:
    from gtstub._host import Program


@dataclasses.dataclass(frozen=True)
class StubBackend(gtx_backend.Backend[Any]):
    """
    gt4py's DaCe backend, with calls through stubs. A backend that was made of a `choice` of the tables, without options
    beside it, has this choice; a copy has none. The other members are as in `make_backend`.
    """

    executor: StubWorkflow
    external_workspace: dace_workflow.ExternalWorkspace | None = None
    stream: Any = "current"
    choice: ClassVar[Choice | None] = None
    """That of an instance is no field, so that a copy by fields has none."""

    def __post_init__(self) -> None:
        # This also covers backends made by dataclasses.replace(), whose settings change the key.
        if not isinstance(self.executor, StubWorkflow):
            raise TypeError(
                f"The executor of a gtstub backend cannot be '{type(self.executor).__name__}': use a backend of gt4py's"
                " own, or replace steps of the executor that the backend has."
            )
        steps = dict(vars(self.transforms))
        if not isinstance(self.transforms, FindingTransforms):
            steps = {name: uncached(step) for name, step in steps.items()}
            steps["func_to_foast"] = Parsing(steps["func_to_foast"])
            steps["func_to_past"] = Parsing(steps["func_to_past"])
            steps["past_to_itir"] = KeepingLowering(steps["past_to_itir"])
        object.__setattr__(self, "transforms", FindingTransforms(**{**steps, "request": self._request}))

    @property
    def lowering(self) -> FindingTransforms:
        assert isinstance(self.transforms, FindingTransforms)
        return self.transforms

    def request(self, inp: ConcreteProgramDef[Any, Any]) -> Request:
        """
        The entry of a program with its compile-time arguments; does not lower the program. Raises ToolchainError as
        `make_request` does.
        """
        return self.lowering.requested(inp).request

    def _request(self, inp: ConcreteProgramDef[Any, Any], parsed: ConcreteProgramDef[Any, Any]) -> Request:
        reading = fingerprint.read(parsed, fingerprint.names(inp.data))
        ingredients = {
            **reading.ingredients,
            "transforms": describe({**vars(self.transforms), "request": None}),
            **self.executor.ingredients,
        }
        request = make_request(reading.name, ingredients, reading.baked, self.executor.compilation.build.cmake)
        if settings.list_file() is not None and mode() == Mode.BUILD:
            registry.add_listed(listed(inp, reading.name, request.key, self.choice))
        return request

    def signatures(self, inp: ConcreteProgramDef[Any, Any]) -> tuple[ProgramSignature, SdfgSignature]:
        """Both signatures of a program with its compile-time arguments. Lowers the program, but does not build it."""
        with self.executor.compilation.build.context():
            source = self.executor.translation(self.lowering.lower(self.lowering.parsed(inp)))
            return source.signature, self.executor.bindings(source).binding_source.sdfg

    def load_artifact(self, artifact: CompilationArtifact) -> Program | ExecutableProgram:
        if not isinstance(artifact, Entry):  # from an object around this backend that has a `compile` of its own
            return super().load_artifact(artifact)
        if mode() == Mode.BUILD:
            name = artifact.manifest().name
            registry.add_entry(artifact)
            return registry.SettingUp(name, registry.load_for_set_up(name, lambda: self._load(artifact)))
        return self._load(artifact)

    def _load(self, artifact: Entry) -> ExecutableProgram:
        program, manifest = artifact.load_with_manifest()
        for storage, device in manifest.workspaces.items():
            memory = (self.external_workspace or {}).get(core_definitions.DeviceType[device.upper()])
            if memory is not None:  # Without it, the program refuses to run, like gt4py's own.
                program.set_workspace(storage, memory)
        if self.stream != "current":
            program.stream = self.stream
        collect_metrics(program, functools.partial(_add_sample, f"{program.name}<{self.name}>"))
        return zeros.for_both_zeros(program, artifact.key, self)


def collect_metrics(program: Program, add_sample: Callable[[float], None]) -> None:
    """Lets a program pass the seconds of each call to `add_sample` when gt4py's configuration asks for metrics."""
    program.set_metrics(vars(config), "COLLECT_METRICS_LEVEL", metrics.PERFORMANCE, add_sample)


def _add_sample(source: str, seconds: float) -> None:
    """Adds a sample to the source that gt4py has set, or else to `source`: a bound call is not a call of gt4py's."""
    if metrics.is_current_source_key_set():
        metrics.add_sample_to_current_source(metrics.COMPUTE_METRIC, seconds)
    else:
        metrics.sources[source].metrics[metrics.COMPUTE_METRIC].add_sample(seconds)


def make_backend(
    gpu: bool | None = None,
    auto_optimize: bool = True,
    async_sdfg_call: bool = True,
    optimization_args: dict[str, Any] | None = None,
    external_workspace: dace_workflow.ExternalWorkspace | None = None,
    unstructured_horizontal_has_unit_stride: bool = config.UNSTRUCTURED_HORIZONTAL_HAS_UNIT_STRIDE,
    use_metrics: bool = True,
    use_zero_origin: bool = False,
    use_max_domain_range_on_unstructured_shift: bool | None = None,
    *,
    device: core_definitions.DeviceType | None = None,
    dace_config: Mapping[str, Any] | None = None,
    bounds: bool = True,
    stream: Any = "current",
) -> StubBackend | None:
    """
    The backend for `program.with_backend(...)`, with the parameters and defaults of gt4py's `make_dace_backend`. In
    mode Python it is None, which gt4py takes for embedded execution.

    - Either `gpu` or `device` is required; icon4py's backend descriptors use `device`.
    - `dace_config` overrides settings of the DaCe configuration (docs/dace-config.md): {"compiler.cpu.args": "-O2"}.
    - Without `bounds`, or if GTSTUB_BOUNDS is 0, stubs do not check the elements that programs access
      (docs/refusals.md).
    - Programs for a GPU put their work on `stream`: None for the default stream, an address, or an object with
      `__cuda_stream__`, such as `cupy.cuda.Stream`; 'current' is the stream of `gtstub.stream()`.
    - A workspace in `external_workspace` must be contiguous and aligned to 256 bytes.

    Raises ConfigError for unknown names in `optimization_args`, which gt4py would ignore, and in `dace_config`, and for
    a malformed GTSTUB_CACHE_MAX_SIZE; TypeError or ValueError for an object that is no stream.
    """
    if (gpu is None) == (device is None):
        raise TypeError("make_backend() takes either 'gpu' or 'device'.")
    options.check_names(optimization_args or {})
    cache_max_size()  # raises
    if mode() == Mode.PYTHON:
        return None
    if gpu is None:
        gpu = device != core_definitions.DeviceType.CPU
    if stream != "current" and not gpu:
        raise TypeError("make_backend() takes 'stream' only for a GPU.")
    _host.check_stream(stream)
    backend = make_dace_backend(
        gpu=gpu,
        auto_optimize=auto_optimize,
        async_sdfg_call=async_sdfg_call,
        optimization_args=optimization_args,
        external_workspace=external_workspace,
        unstructured_horizontal_has_unit_stride=unstructured_horizontal_has_unit_stride,
        use_metrics=use_metrics,
        use_zero_origin=use_zero_origin,
        use_max_domain_range_on_unstructured_shift=use_max_domain_range_on_unstructured_shift,
    )
    steps = backend.executor
    compilation = StubCompilation(steps.compilation, dict(dace_config or {}))
    build = compilation.build
    build.ingredients  # noqa: B018  raises
    replace_default_runner(FindingRunner)
    return StubBackend(
        name=f"{backend.name}_gtstub",
        executor=StubWorkflow(
            # Omits gt4py's cache of SDFGs, whose keys lack the DaCe configuration.
            translation=SigningTranslation(steps.translation.step),
            bindings=StubBindings("rocm" if build.device == "rocm" else "cuda", bounds and settings.bounds()),
            compilation=compilation,
        ),
        allocator=backend.allocator,
        transforms=backend.transforms,
        external_workspace=external_workspace,
        stream=stream,
    )


def use(**options: Any) -> None:
    """
    Makes `make_backend(**options)` the default backend of gt4py in this process. Programs and field operators that are
    decorated after this call, and name no backend, run with it. In mode Python they run embedded.

    Those that name one, also None, and those that were decorated before, are not changed. Raises what `make_backend`
    raises, and then changes nothing.
    """
    decorator.DEFAULT_BACKEND = make_backend(**options)
