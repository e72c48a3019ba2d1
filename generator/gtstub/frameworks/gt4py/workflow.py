"""
The steps of gt4py's DaCe workflow, replaced or wrapped. The lowering step first looks for a cache entry. The bindings
step generates a stub. The compilation step compiles the stub while DaCe compiles the SDFG, and publishes both.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import dace
from gt4py._core import definitions as core_definitions
from gt4py.next import backend as gtx_backend
from gt4py.next.ffront.stages import ConcretePASTProgramDef, DSLFieldOperatorDef, DSLProgramDef
from gt4py.next.otf import arguments, recipes, workflow
from gt4py.next.otf.compilation.common import get_device_arch
from gt4py.next.program_processors.runners.dace.workflow import compilation as dace_compilation

from gtstub import settings
from gtstub.entries import spans
from gtstub.entries.building.progress import builds
from gtstub.entries.building.templates import compiled_templates
from gtstub.entries.building.waiting import build_once
from gtstub.entries.building.worker import UnfitError
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.key import differences
from gtstub.entries.cache.lookup import Request
from gtstub.entries.cache.manifest import BuildStage
from gtstub.entries.toolchain import cpu
from gtstub.entries.toolchain.arch import toolkit
from gtstub.errors import ConfigError
from gtstub.frameworks.dace.build import Build, with_gpu_arch
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.dace.streams import make_asynchronous
from gtstub.frameworks.gt4py import zeros
from gtstub.frameworks.gt4py.calls import check_tables, check_types
from gtstub.frameworks.gt4py.conditions import check_conditions
from gtstub.frameworks.gt4py.describe import describe
from gtstub.frameworks.gt4py.internals import (
    BindingSource,
    CompilableProgramDef,
    ConcreteProgramDef,
    ExtensionSource,
    ProgramSource,
    SDFGCodeSpec,
    SourceCodeSpec,
    add_trace_markers,
    versions,
)
from gtstub.frameworks.gt4py.options import UNIT_STRIDE
from gtstub.frameworks.gt4py.program_signature import program_signature
from gtstub.frameworks.gt4py.sdfg_checks import KeptStages, warn_of_broken_rules
from gtstub.frameworks.gt4py.stages import FoundProgramDef, LoweredProgramDef, RequestedArgs, RequestedProgram
from gtstub.stub.codegen.stub import Stub, make_stub
from gtstub.stub.signature.model import Device, ProgramSignature, SdfgSignature

# --- Lowering ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class KeepingLowering:
    """gt4py's lowering of a program. Keeps the parameter types, which gt4py drops."""

    step: workflow.Workflow[ConcretePASTProgramDef, CompilableProgramDef]

    def __call__(self, inp: ConcretePASTProgramDef) -> LoweredProgramDef:
        lowered = self.step(inp)
        types = {str(parameter.id): parameter.type for parameter in inp.data.past_node.params}
        return LoweredProgramDef(lowered.data, lowered.args, types)


@dataclasses.dataclass(frozen=True)
class FindingTransforms(gtx_backend.Transforms):
    """
    gt4py's lowering, skipped for programs with a cache entry; one that comes with `RequestedArgs` has none. `request`
    makes the request for a program from it and from what gt4py parsed.
    """

    request: Callable[[ConcreteProgramDef[Any, Any], ConcreteProgramDef[Any, Any]], Request] | None = None

    def __call__(self, inp: ConcreteProgramDef[Any, Any]) -> FoundProgramDef | LoweredProgramDef:
        is_waiting = not isinstance(inp.args, RequestedArgs)
        if isinstance(inp.args, RequestedArgs):
            requested = inp.args.requested
        else:
            if isinstance(inp.args, arguments.JITArgs):
                inp = self.aotify_args(inp)
            requested = self.requested(inp)
            zeros.remember(requested.request.key, inp)
            if (entry := requested.request.find()) is not None:
                return FoundProgramDef(None, inp.args, entry)
            check_types(requested.parsed)
        key = requested.request.key
        with builds.shown():
            builds.begin(key, getattr(inp.args, "label", "") or requested.request.label)
            try:
                lowered = _lowered_ahead.pop(key, None) or self._lower(requested)
            except BaseException as error:
                builds.end(key, error)
                raise
        return dataclasses.replace(lowered, is_waiting=is_waiting)

    def lower_ahead(self, inp: ConcreteProgramDef[Any, Any]) -> LoweredProgramDef:
        """Lowers a program that is built later in this process, and then is not lowered again."""
        requested = self.requested(inp)
        lowered = _lowered_ahead[requested.request.key] = self._lower(requested)
        return lowered

    def _lower(self, requested: RequestedProgram) -> LoweredProgramDef:
        begin = time.time()
        lowered = self.lower(requested.parsed)
        check_tables(lowered, requested.request.program)
        measured = (BuildStage.since(begin, "lowering"),)
        return dataclasses.replace(lowered, request=requested.request, measured=measured)

    def requested(self, inp: ConcreteProgramDef[Any, Any]) -> RequestedProgram:
        assert self.request is not None
        begin = time.monotonic_ns()
        parsed = self.parsed(inp)
        request = self.request(inp, parsed)
        spans.add("key", request.program, begin)
        return RequestedProgram(parsed, request)

    def parsed(self, inp: ConcreteProgramDef[Any, Any]) -> ConcreteProgramDef[Any, Any]:
        """
        The program as gt4py reads it from its file now. The key describes this, and this is lowered, so that the file
        may change in between.
        """
        match inp.data:
            case DSLFieldOperatorDef():
                return self.func_to_foast(inp)
            case DSLProgramDef():
                return self.func_to_past(inp)
        return inp

    def lower(self, inp: ConcreteProgramDef[Any, Any]) -> LoweredProgramDef:
        lowered = super().__call__(inp)
        check_conditions(lowered.data)
        if isinstance(lowered, LoweredProgramDef):
            return lowered
        return LoweredProgramDef(lowered.data, lowered.args, {})  # a program of gt4py's IR, which needs no lowering


_lowered_ahead: dict[str, LoweredProgramDef] = {}
"""By the key of the entry, which describes all that a lowered program depends on."""


# --- Translation and bindings -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SignedSource(ProgramSource[SDFGCodeSpec]):
    """
    An SDFG with the signature of its program, and that of each stage before it, if these are kept. A field operator
    `evaluates_both` sides of `where`; a program that was written in gt4py's IR does not. `measured` are the stages of
    the build so far.
    """

    signature: ProgramSignature
    evaluates_both: bool
    request: Request | None
    stages: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    measured: tuple[BuildStage, ...] = dataclasses.field(default=(), compare=False)


@dataclasses.dataclass(frozen=True)
class StubSource(BindingSource[SDFGCodeSpec, SourceCodeSpec]):
    """A stub with the signature of the SDFG that it calls. `source_code` is the stub's C code."""

    stub: Stub
    sdfg: SdfgSignature


@dataclasses.dataclass(frozen=True)
class SigningTranslation:
    """gt4py's translation, with the signature of the program added."""

    step: workflow.Workflow[CompilableProgramDef, ProgramSource[SDFGCodeSpec]]

    def __call__(self, inp: LoweredProgramDef) -> SignedSource:
        begin = time.time()
        step, stages = self.step, KeptStages()
        if settings.keeps_stages():
            step = self._keeping(inp, stages)
        try:
            source = step(inp)
        except NotImplementedError as error:
            if getattr(self.step, UNIT_STRIDE, False) and "multiple horizontal dimensions" in str(error):
                raise ConfigError(
                    f"Program '{inp.data.id}' has fields with several horizontal dimensions, so its backend must be"
                    f" made without the option '{UNIT_STRIDE}'. gt4py says: {error}"
                ) from error
            raise
        signature = program_signature(inp, source, inp.parameter_types)
        return SignedSource(
            **vars(source),
            signature=signature,
            evaluates_both=bool(inp.parameter_types),
            request=inp.request,
            stages=stages.kept,
            measured=(*inp.measured, BuildStage.since(begin, "translation")),
        )

    def _keeping(self, inp: LoweredProgramDef, stages: KeptStages) -> workflow.Workflow[Any, Any]:
        """
        The same step with more hooks. It is made here, and not by `make_backend`, so that they are outside the key. If
        it optimises, the SDFG without that is lowered first, and is the first stage.
        """
        step = cast(Any, self.step)
        if not getattr(step, "auto_optimize", False):  # or a step that is not gt4py's
            return self.step
        stages.keep("lowered", dataclasses.replace(step, auto_optimize=False)(inp).source_code)
        options = dict(step.auto_optimize_args or {})
        options["optimization_hooks"] = stages.hooks(options.get("optimization_hooks") or {})
        return cast(workflow.Workflow[Any, Any], dataclasses.replace(step, auto_optimize_args=options))


@dataclasses.dataclass(frozen=True)
class StubBindings:
    """Generates the stub of a program. Without `bounds` it does not check which elements the program accesses."""

    gpu: Device
    bounds: bool

    def __call__(self, inp: SignedSource) -> ExtensionSource[Any, Any]:
        begin = time.time()
        raw = cast(Mapping[str, Any], inp.source_code)
        sdfg = sdfg_signature(
            dace.SDFG.from_json(raw), raw, self.gpu, bounds=self.bounds, evaluates_both=inp.evaluates_both
        )
        stub = make_stub(sdfg, inp.signature, compiled=compiled_templates())
        inp = dataclasses.replace(inp, measured=(*inp.measured, BuildStage.since(begin, "bindings")))
        return ExtensionSource(inp, StubSource(stub.files[stub.source], (), stub=stub, sdfg=sdfg))


# --- Compilation ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StubWorkflow(recipes.OTFCompileWorkflow):
    """Runs the steps, unless another process runs them for the same entry; then waits for that process."""

    compilation: StubCompilation

    def __call__(self, inp: FoundProgramDef | LoweredProgramDef) -> Entry:
        if isinstance(inp, FoundProgramDef):
            return inp.entry
        assert inp.request is not None
        build = cast(Callable[[], Entry], functools.partial(super().__call__, inp))
        key = inp.request.key
        try:
            self._check(inp.request)
            with self.compilation.build.context():
                entry = build_once(inp.request.cache, key, build)
        except BaseException as error:
            builds.end(key, error)
            raise
        builds.end(key, entry=entry)
        return entry

    @property
    def ingredients(self) -> dict[str, Any]:
        """
        What a build reads in its process: the steps with all their settings, and the environment. Read each time,
        because hooks, their modules and the environment may change between two programs.
        """
        step, build = self.compilation.step, self.compilation.build
        return {
            "backend": {
                "translation": describe(self.translation.step),
                "bindings": describe(self.bindings),
                "device": step.device_type.name,
                "build_type": step.cmake_build_type.value,
                "trace_markers": self.compilation.has_trace_markers,
                "toolkit": "" if build.device == "cpu" else toolkit(build.device),
            },
            "versions": versions(),
            "dace_config": build.ingredients,
            "cpu": cpu.key_features(build.flags),
        }

    def _check(self, request: Request) -> None:
        """
        Raises UnfitError if this process would build something else than was requested. Worker processes import the
        user's modules again, and keep the environment that they were started with.
        """
        made = self.compilation.build.toolchain(request.cache).ingredients
        here = {**request.ingredients, **self.ingredients, "toolchain": made}
        if found := differences(request.ingredients, here):
            raise UnfitError(
                f"Program '{request.program}' cannot be built: these ingredients of its key are not the same in the"
                f" process that builds it: {', '.join(repr(each.path) for each in found)}. Set"
                " GT4PY_BUILD_JOBS_MODE=serial, or change no function, variable or environment variable after its"
                " first use."
            )


@dataclasses.dataclass(frozen=True)
class StubCompilation:
    """
    Builds a cache entry with the settings of `step`, gt4py's own compilation. `dace_config` overrides settings of the
    DaCe configuration.
    """

    step: dace_compilation.DaCeCompiler
    dace_config: Mapping[str, Any]

    def __call__(self, inp: ExtensionSource[Any, Any]) -> Entry:
        source, stub = inp.program_source, inp.binding_source
        assert isinstance(source, SignedSource)
        assert isinstance(stub, StubSource)
        assert source.request is not None
        if settings.checks_sdfgs():
            warn_of_broken_rules(cast(Mapping[str, Any], source.source_code), "final", source.signature)
        if self.has_trace_markers:
            _, sdfg = add_trace_markers(inp)
        else:
            sdfg = dace.SDFG.from_json(source.source_code)
        if self.build.device != "cpu":
            make_asynchronous(sdfg)
        return self.build.publish(
            source.request,
            sdfg,
            stub.stub,
            source.signature,
            stub.sdfg,
            cast(Mapping[str, Any], source.source_code),
            stages=source.stages,
            measured=source.measured,
        )

    @property
    def has_trace_markers(self) -> bool:
        return bool(self.step.add_gpu_trace_markers and self.step.device_type == core_definitions.CUPY_DEVICE_TYPE)

    @property
    def build(self) -> Build:
        """The build in the current environment."""
        devices: Mapping[str, Device] = {"CPU": "cpu", "ROCM": "rocm"}
        name = self.step.device_type.name
        device = devices.get(name, "cuda")
        # As in gt4py, a build must not query the GPU. An architecture that is named is what the entry says it needs.
        overrides = with_gpu_arch(device, self.dace_config, get_device_arch)
        return Build(device, name.lower(), self.step.cmake_build_type.value, overrides)
