"""The plug-in for gt4py: a backend whose programs are called through stubs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gt4py._core import definitions as core_definitions
from gt4py.next import backend as gtx_backend
from gt4py.next import config
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import stages
from gt4py.next.otf.compilation import cache as gtx_cache
from gt4py.next.otf.definitions import ConcreteProgramDef
from gt4py.next.program_processors.runners.dace.workflow import backend as dace_backend
from gt4py.next.program_processors.runners.dace.workflow import common as dace_workflow

from gtstub import ranks
from gtstub.cache.entry import Entry
from gtstub.cache.lookup import Request
from gtstub.cache.store import Cache
from gtstub.cache.store import open_cache as open_cache_of
from gtstub.frameworks.gt4py import fingerprint, options, runner
from gtstub.frameworks.gt4py.describe import describe
from gtstub.frameworks.gt4py.internals import versions
from gtstub.frameworks.gt4py.workflow import (
    FindingTransforms,
    KeepingLowering,
    SigningTranslation,
    StubBindings,
    StubCompilation,
    StubWorkflow,
)
from gtstub.program import registry
from gtstub.settings import Mode, mode
from gtstub.toolchain import compiler, cpu
from gtstub.toolchain.arch import toolkit

if TYPE_CHECKING:
    from gtstub._host import Program


@dataclasses.dataclass(frozen=True)
class StubBackend(gtx_backend.Backend[Any]):
    """gt4py's DaCe backend whose programs are called through stubs."""

    external_workspace: dace_workflow.ExternalWorkspace | None = None

    def __post_init__(self) -> None:
        # Also where a backend is made of another one by dataclasses.replace(): its settings are part of the key.
        if isinstance(self.transforms, FindingTransforms):
            transforms = dataclasses.replace(self.transforms, request=self.request)
            object.__setattr__(self, "transforms", transforms)

    def request(self, inp: ConcreteProgramDef[Any, Any]) -> Request:
        """
        The entry of a program with its compile-time arguments. Nothing is lowered. Where nothing is built, or no
        compiler is found, it is an entry that is there, of whichever toolchain is known to the cache.

        Raises ToolchainError where there is none, and nothing to build it with.
        """
        compilation = self._compilation
        place = open_cache(compilation.step.cache_lifetime)
        reading = fingerprint.read(inp)
        ingredients = {
            **reading.ingredients,
            **self._description,
            # As the environment has them now: a build reads it then, too.
            "dace_config": compilation.dace_ingredients,
            "cpu": cpu.key_features(compilation.flags),
        }
        request = Request(inp.data.definition.__name__, ingredients, reading.baked, place)
        never_builds = mode() == Mode.RUN
        if never_builds or not compiler.is_complete():
            found = _of_any_toolchain(request)
            if never_builds or found.is_there:
                return found
        return _built_with(request, compiler.find(place.root, place.shared).ingredients)

    @functools.cached_property
    def _description(self) -> dict[str, Any]:
        """What the backend itself adds to a key: its steps with all their settings."""
        steps, compilation = self.executor, self._compilation
        step = compilation.step
        transforms = {each.name: getattr(self.transforms, each.name) for each in dataclasses.fields(self.transforms)}
        return {
            "backend": {
                "transforms": describe({**transforms, "request": None}),
                "translation": describe(steps.translation.step),
                "bindings": describe(steps.bindings),
                "device": step.device_type.name,
                "build_type": step.cmake_build_type.value,
                "trace_markers": compilation.has_trace_markers,
                "toolkit": "" if compilation.device == "cpu" else toolkit(compilation.device),
            },
            "versions": versions(),
        }

    @property
    def _compilation(self) -> StubCompilation:
        compilation = self.executor.compilation
        assert isinstance(compilation, StubCompilation)
        return compilation

    def load_artifact(self, artifact: stages.CompilationArtifact) -> Program:
        assert isinstance(artifact, Entry)
        if mode() == Mode.BUILD:
            registry.stop([artifact])
        program, manifest = artifact.load_with_manifest()
        for storage, device in manifest.workspaces.items():
            memory = (self.external_workspace or {}).get(core_definitions.DeviceType[device.upper()])
            if memory is not None:  # Else the program refuses to run, as gt4py's own does.
                program.set_workspace(storage, memory)
        program.set_metrics(
            vars(config),
            "COLLECT_METRICS_LEVEL",
            metrics.PERFORMANCE,
            functools.partial(metrics.add_sample_to_current_source, metrics.COMPUTE_METRIC),
        )
        return program


def _built_with(request: Request, made: Mapping[str, Any]) -> Request:
    return dataclasses.replace(request, ingredients={**request.ingredients, "toolchain": made})


def _of_any_toolchain(request: Request) -> Request:
    """An entry that is there, by whichever toolchain; where there is none, one that is not."""
    place = request.cache
    known = [_built_with(request, each.ingredients) for each in compiler.known(place.layers)]
    there = list({each.key: each for each in known if each.is_there}.values())
    if len(there) > 1:
        there.sort(key=lambda each: place.find(each.key) is None)  # whole ones first
    if there:
        return there[0]
    # Entries that were imported came without what CMake had said.
    nearest = place.nearest(request.program, request.ingredients)
    if nearest is not None and [each.path for each in nearest.differences] == ["toolchain"]:
        return _built_with(request, nearest.manifest.ingredients["toolchain"])
    return known[0] if known else request


def open_cache(lifetime: config.BuildCacheLifetime) -> Cache:
    """The cache of gtstub; where nothing names one, beside what gt4py caches for as long."""
    beside = Path(gtx_cache.get_cache_base_path(lifetime)).resolve() / "gtstub"
    return open_cache_of(beside, ranks.current().path)


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
) -> StubBackend | None:
    """
    The backend for `program.with_backend(...)`. Parameters and defaults are those of gt4py's `make_dace_backend`.
    None in mode Python, which for gt4py is embedded execution.

    icon4py's backend descriptors name a `device` instead of saying `gpu`; one of the two is needed.
    `dace_config` overrides settings of the DaCe configuration (docs/dace-config.md): {"compiler.cpu.args": "-O2"}.
    Raises ConfigError for a name in `optimization_args` that gt4py would ignore, and for a setting that DaCe would.
    A workspace in `external_workspace` must be contiguous and aligned to 256 bytes.
    """
    if (gpu is None) == (device is None):
        raise TypeError("make_backend() takes either 'gpu' or 'device'.")
    options.check_names(optimization_args or {})
    if mode() == Mode.PYTHON:
        return None
    if gpu is None:
        gpu = device != core_definitions.DeviceType.CPU
    backend = dace_backend.make_dace_backend(
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
    transforms = {step.name: getattr(backend.transforms, step.name) for step in dataclasses.fields(backend.transforms)}
    compilation = StubCompilation(steps.compilation, dict(dace_config or {}))
    compilation.dace_ingredients  # noqa: B018  raises
    runner.install()
    return StubBackend(
        name=f"{backend.name}_gtstub",
        executor=StubWorkflow(
            # Without gt4py's cache of SDFGs, which does not know how DaCe was configured.
            translation=SigningTranslation(steps.translation.step),
            bindings=StubBindings("rocm" if compilation.device == "rocm" else "cuda"),
            compilation=compilation,
        ),
        allocator=backend.allocator,
        transforms=FindingTransforms(**{**transforms, "past_to_itir": KeepingLowering(transforms["past_to_itir"])}),
        external_workspace=external_workspace,
    )
