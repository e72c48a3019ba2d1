"""
The plug-in for gt4py: program signatures, and a backend whose programs are called through stubs.

The backend is gt4py's own DaCe backend with two of its steps replaced: the bindings step generates a stub, and the
compilation step compiles it while DaCe compiles the SDFG, and publishes both as a cache entry.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import dace
import numpy as np
from dace.codegen import compiler as dace_compiler
from gt4py._core import definitions as core_definitions
from gt4py.next import backend as gtx_backend
from gt4py.next import common, config
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.ffront.stages import ConcretePASTProgramDef
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import arguments, code_specs, stages, workflow
from gt4py.next.otf.compilation import cache as gtx_cache
from gt4py.next.otf.definitions import CompilableProgramDef, ConcreteProgramDef
from gt4py.next.program_processors.runners.dace.workflow import backend as dace_backend
from gt4py.next.program_processors.runners.dace.workflow import common as dace_workflow
from gt4py.next.program_processors.runners.dace.workflow import compilation as dace_compilation
from gt4py.next.type_system import type_specifications as ts

from gtstub import cache, entry, toolchain
from gtstub.errors import SignatureError
from gtstub.frameworks import options
from gtstub.frameworks.dace import check_arguments, sdfg_signature
from gtstub.planner import make_plan
from gtstub.render import render
from gtstub.signature import documents
from gtstub.signature.model import (
    Connectivity,
    Device,
    Dimension,
    DType,
    FieldType,
    Parameter,
    ProgramSignature,
    ScalarType,
    SdfgSignature,
    StaticArgument,
    StaticDomain,
    TupleType,
    Type,
)

if TYPE_CHECKING:
    from gtstub._host import Program

# --- Program signatures -----------------------------------------------------------------------------------------------


def program_signature(compilable: CompilableProgramDef, source: stages.ProgramSource[Any]) -> ProgramSignature:
    """
    What callers of a lowered gt4py program pass.

    gt4py itself makes all arguments positional (`out` is the last parameter of a field operator) and takes named
    collections apart into tuples before it calls what a backend compiled: that canonical form is described here. The
    keys of named collections are known only where `KeepingLowering` has lowered the program.
    """
    name = str(source.entry_point.name)
    contexts = compilable.args.argument_descriptor_contexts
    declared = compilable.parameter_types if isinstance(compilable, LoweredProgramDef) else {}
    return ProgramSignature(
        name=name,
        parameters=tuple(
            Parameter(parameter, _type(name, parameter, declared.get(parameter, type_)))
            for parameter, type_ in ((str(item.name), item.type_) for item in source.entry_point.parameters)
        ),
        connectivities=tuple(
            Connectivity(
                name=offset,
                dtype=_dtype(name, offset, np.dtype(type_.dtype.scalar_type).name),
                source=_dimension(type_.source_dim),
                neighbor=_dimension(type_.neighbor_dim),
                codomain=_dimension(type_.codomain),
                max_neighbors=type_.max_neighbors,
                has_skip_values=type_.has_skip_values,
            )
            for offset, type_ in sorted(compilable.args.offset_provider_type.items())
            if isinstance(type_, common.NeighborConnectivityType)
        ),
        static_arguments=tuple(
            StaticArgument(leaf, np.asarray(value).item())
            for parameter, descriptor in contexts.get(arguments.StaticArg, {}).items()
            for top, static in _leaves(parameter, descriptor)
            for leaf, value in _leaves(top, cast(arguments.StaticArg[Any], static).value)
        ),
        static_domains=tuple(
            StaticDomain(leaf, tuple((range_.start, range_.stop) for range_ in static.domain.ranges))
            for parameter, descriptor in contexts.get(arguments.FieldDomainDescriptor, {}).items()
            for leaf, static in _leaves(parameter, descriptor)
        ),
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The elements of nested tuples under their flattened names; None stands for an element that is not static."""
    if isinstance(value, tuple):
        for index, element in enumerate(value):
            yield from _leaves(f"{name}_{index}", element)
    elif value is not None:
        yield name, value


def _type(program: str, path: str, type_: ts.TypeSpec) -> Type:
    match type_:
        case ts.ScalarType(shape=None):
            return ScalarType(_dtype(program, path, type_.kind.name.lower()))
        case ts.FieldType(dtype=ts.ScalarType(shape=None) as element):
            return FieldType(
                _dtype(program, path, element.kind.name.lower()), tuple(_dimension(dim) for dim in type_.dims)
            )
        case ts.TupleType():
            return TupleType(
                tuple(_type(program, f"{path}[{index}]", element) for index, element in enumerate(type_.types))
            )
        case ts.NamedCollectionType():
            elements = zip(type_.keys, type_.types, strict=True)
            return TupleType(
                tuple(_type(program, f"{path}.{key}", element) for key, element in elements), tuple(type_.keys)
            )
    raise SignatureError(
        f"Argument '{path}' of program '{program}' must be a field, a scalar or a tuple of them, but is '{type_}'."
    )


def _dtype(program: str, path: str, dtype: str) -> DType:
    if dtype not in get_args(DType):
        raise SignatureError(
            f"Argument '{path}' of program '{program}' must have one of the element types"
            f" {', '.join(repr(known) for known in get_args(DType))}, but has '{dtype}'."
        )
    return cast(DType, dtype)


def _dimension(dimension: common.Dimension) -> Dimension:
    return Dimension(dimension.value, dimension.kind.value)


# --- The steps of the workflow ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class LoweredProgramDef(CompilableProgramDef):
    """A lowered program with the types that its parameters had before: named collections have become tuples."""

    parameter_types: Mapping[str, ts.TypeSpec]


@dataclasses.dataclass(frozen=True)
class KeepingLowering:
    """gt4py's lowering of a program, and what it drops."""

    step: workflow.Workflow[ConcretePASTProgramDef, CompilableProgramDef]

    def __call__(self, inp: ConcretePASTProgramDef) -> LoweredProgramDef:
        lowered = self.step(inp)
        types = {str(parameter.id): parameter.type for parameter in inp.data.past_node.params}
        return LoweredProgramDef(lowered.data, lowered.args, types)


@dataclasses.dataclass(frozen=True)
class SignedSource(stages.ProgramSource[code_specs.SDFGCodeSpec]):
    """An SDFG with the signature of the program that it was lowered from."""

    signature: ProgramSignature


@dataclasses.dataclass(frozen=True)
class StubSource(stages.BindingSource[code_specs.SDFGCodeSpec, code_specs.SourceCodeSpec]):
    """The text of a stub (`source_code` is its C file) with the signature of the SDFG that it calls."""

    header: str
    sdfg: SdfgSignature


@dataclasses.dataclass(frozen=True)
class SigningTranslation:
    """gt4py's translation, and the signature of what it translates."""

    step: workflow.Workflow[CompilableProgramDef, stages.ProgramSource[code_specs.SDFGCodeSpec]]

    def __call__(self, inp: CompilableProgramDef) -> SignedSource:
        source = self.step(inp)
        members = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
        return SignedSource(**members, signature=program_signature(inp, source))


@dataclasses.dataclass(frozen=True)
class StubBindings:
    """Generates the stub of a program."""

    gpu: Device

    def __call__(self, inp: SignedSource) -> stages.ExtensionSource[Any, Any]:
        raw = cast(Mapping[str, Any], inp.source_code)
        sdfg = sdfg_signature(dace.SDFG.from_json(raw), raw, self.gpu)
        texts = render(
            make_plan(sdfg, inp.signature),
            program_digest=documents.digest(documents.program_to_json(inp.signature)),
            sdfg_digest=documents.digest(documents.sdfg_to_json(sdfg)),
        )
        return stages.ExtensionSource(inp, StubSource(texts.source, (), header=texts.header, sdfg=sdfg))


@dataclasses.dataclass(frozen=True)
class StubCompilation:
    """Builds a cache entry; `step` is gt4py's own compilation, whose settings are used."""

    step: dace_compilation.DaCeCompiler

    def __call__(self, inp: stages.ExtensionSource[Any, Any]) -> cache.StubArtifact:
        source, stub = inp.program_source, inp.binding_source
        assert isinstance(source, SignedSource)
        assert isinstance(stub, StubSource)
        root = cache_root(self.step.cache_lifetime)
        compiler = toolchain.find(root)
        texts = {
            "program.json": documents.program_to_json(source.signature),
            "sdfg.json": documents.sdfg_to_json(stub.sdfg),
            f"{source.signature.name}_stub.c": stub.source_code,
            f"{source.signature.name}_stub.h": stub.header,
        }
        with dace_workflow.dace_context(device_type=self.step.device_type, cmake_build_type=self.step.cmake_build_type):
            inputs = {
                "texts": {name: documents.digest(text) for name, text in texts.items()},
                "sdfg": hashlib.sha256(json.dumps(source.source_code, sort_keys=True).encode()).hexdigest(),
                "toolchain": compiler.digest,
                "dace": version("dace"),
                "gt4py": config.BUILD_CACHE_VERSION_ID,
                "dace_config": json.loads(json.dumps(dace.Config._data.nondefaults(), default=str)),
                "gpu_trace_markers": self._has_trace_markers,
                "cxx": os.environ.get("CXX"),
            }
            key = cache.key(source.signature.name, inputs)
            if (artifact := cache.find(root, key)) is not None:
                return artifact
            with cache.private_directory(root, key) as private:
                directory = private / "entry"
                directory.mkdir()
                for name, text in texts.items():
                    (directory / name).write_text(text, encoding="utf-8")
                stub_library = f"{source.signature.name}_stub.so"
                build = compiler.start(directory / f"{source.signature.name}_stub.c", directory / stub_library)
                try:
                    library = self._compile_sdfg(inp, stub.sdfg, private / "dace")
                except BaseException:
                    build.cancel()
                    raise
                build.wait()
                library.rename(directory / stub.sdfg.library)
                manifest = {
                    "name": source.signature.name,
                    "stub": stub_library,
                    "library": stub.sdfg.library,
                    "workspaces": {workspace.storage: workspace.device for workspace in stub.sdfg.workspaces},
                    "inputs": inputs,
                }
                return cache.publish(directory, root, key, manifest)

    @property
    def _has_trace_markers(self) -> bool:
        return bool(self.step.add_gpu_trace_markers and self.step.device_type == core_definitions.CUPY_DEVICE_TYPE)

    def _compile_sdfg(self, inp: stages.ExtensionSource[Any, Any], signature: SdfgSignature, folder: Path) -> Path:
        """Lets DaCe build the SDFG in `folder`; returns its library."""
        if self._has_trace_markers:
            _, sdfg = dace_compilation._add_tx_markers(inp)
        else:
            sdfg = dace.SDFG.from_json(inp.program_source.source_code)
        sdfg.build_folder = str(folder)
        sdfg.compile(validate=False, return_program_handle=False)
        compiled = next(iter(folder.glob("program.sdfg*")))
        check_arguments(dace.SDFG.from_file(str(compiled)), signature)
        return cast(Path, dace_compiler.get_binary_name(object_folder=folder, sdfg_name=sdfg.name))


def cache_root(lifetime: config.BuildCacheLifetime) -> Path:
    """GTSTUB_CACHE_DIR where it is set, else beside what gt4py caches for as long."""
    if os.environ.get("GTSTUB_CACHE_DIR"):
        return cache.default_root()
    return Path(gtx_cache.get_cache_base_path(lifetime)).resolve() / "gtstub"


# --- The backend ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class StubBackend(gtx_backend.Backend[Any]):
    """gt4py's DaCe backend whose programs are called through stubs."""

    external_workspace: dace_workflow.ExternalWorkspace | None = None

    def load_artifact(self, artifact: stages.CompilationArtifact) -> Program:
        assert isinstance(artifact, cache.StubArtifact)
        program = artifact.load()
        for storage, device in entry.read_manifest(artifact.path)["workspaces"].items():
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
) -> StubBackend:
    """
    The backend for `program.with_backend(...)`. Parameters and defaults are those of gt4py's `make_dace_backend`.

    icon4py's backend descriptors name a `device` instead of saying `gpu`; one of the two is needed.
    Raises ConfigError for a name in `optimization_args` that gt4py would ignore.
    A workspace in `external_workspace` must be contiguous and aligned to 256 bytes.
    """
    if (gpu is None) == (device is None):
        raise TypeError("make_backend() takes either 'gpu' or 'device'.")
    options.check_names(optimization_args or {})
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
    steps, transforms = backend.executor, backend.transforms
    is_rocm = steps.compilation.device_type == core_definitions.DeviceType.ROCM
    return StubBackend(
        name=f"{backend.name}_gtstub",
        executor=steps.replace(
            translation=SigningTranslation(steps.translation),
            bindings=StubBindings("rocm" if is_rocm else "cuda"),
            compilation=StubCompilation(steps.compilation),
        ),
        allocator=backend.allocator,
        transforms=transforms.replace(past_to_itir=KeepingLowering(transforms.past_to_itir)),
        external_workspace=external_workspace,
    )


# --- Without building -------------------------------------------------------------------------------------------------


def extract_signatures(
    program: Any, offset_provider: common.OffsetProvider, static: Mapping[str, Any], backend: StubBackend
) -> tuple[ProgramSignature, SdfgSignature]:
    """
    Both signatures of a gt4py program or field operator, lowered for `backend` as a call would, but not built.

    `static` holds the values of scalar parameters that are compiled in.
    """
    definition = ffront_type_info.type_in_program_context(program.__gt_type__()).definition
    parameters = definition.pos_or_kw_args | definition.kw_only_args
    for name in static:
        if not isinstance(parameters.get(name), ts.ScalarType):
            raise SignatureError(f"Program '{program.__name__}' has no scalar parameter '{name}' to be static.")
    values = {name: np.dtype(parameters[name].kind.name.lower()).type(value) for name, value in static.items()}
    compile_time_args = arguments.CompileTimeArgs(
        args=(*definition.pos_only_args, *definition.pos_or_kw_args.values()),
        kwargs=definition.kw_only_args,
        offset_provider=offset_provider,
        column_axis=None,
        argument_descriptor_contexts={
            arguments.StaticArg: {name: arguments.StaticArg(value) for name, value in values.items()}
        },
    )
    steps = backend.executor
    source = steps.translation(backend.transforms(ConcreteProgramDef(program.definition_stage, compile_time_args)))
    return source.signature, steps.bindings(source).binding_source.sdfg
