"""
The internals of gt4py that gtstub uses, the differences between its versions, and the versions of the packages that
lower and compile a program.

After an upgrade of gt4py, check this module first. No other module asks for a version of gt4py.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from importlib.util import find_spec
from typing import Any, cast

from gt4py.eve import concepts, trees
from gt4py.next import backend, config
from gt4py.next.common import _connectivity as make_connectivity
from gt4py.next.common import _field as make_field
from gt4py.next.fingerprinting import _is_fingerprinted_field as is_fingerprinted_field
from gt4py.next.otf import runners
from gt4py.next.program_processors.runners.dace.workflow.compilation import _add_tx_markers as add_trace_markers

from gtstub.frameworks.versions import dace_versions, version_of

if find_spec("gt4py.next.otf.definitions") is not None:  # up to gt4py 1.2.2
    from gt4py.next.otf.code_specs import SDFGCodeSpec, SourceCodeSpec
    from gt4py.next.otf.definitions import CompilableProgramDef, ConcreteProgramDef
    from gt4py.next.otf.stages import (
        BindingSource,
        CompilationArtifact,
        ExecutableProgram,
        ExtensionSource,
        ProgramSource,
    )
    from gt4py.next.program_processors.runners.dace import make_dace_backend
    from gt4py.next.program_processors.runners.gtfn import GTFNBackendFactory

    def make_gtfn_backend(gpu: bool, steps: Mapping[str, Any], translation: Mapping[str, Any]) -> backend.Backend[Any]:
        """A GTFN backend with options of its steps, and of its translation step alone."""
        options = {f"otf_workflow__{name}": value for name, value in steps.items()}
        options |= {f"otf_workflow__bare_translation__{name}": value for name, value in translation.items()}
        return GTFNBackendFactory(gpu=gpu, **options)

else:  # from gt4py 1.2.3
    from gt4py.next.otf.artifacts import (
        BindingSource,
        CompilationArtifact,
        ExecutableProgram,
        ExtensionSource,
        ProgramSource,
        SDFGCodeSpec,
        SourceCodeSpec,
    )
    from gt4py.next.otf.stages import CompilableProgramDef, ConcreteProgramDef
    from gt4py.next.program_processors.runners import dace, gtfn

    def make_dace_backend(
        gpu: bool,
        auto_optimize: bool = True,
        async_sdfg_call: bool = True,
        optimization_args: dict[str, Any] | None = None,
        external_workspace: Any = None,
        unstructured_horizontal_has_unit_stride: bool = config.UNSTRUCTURED_HORIZONTAL_HAS_UNIT_STRIDE,
        use_metrics: bool = True,
        use_zero_origin: bool = False,
        use_max_domain_range_on_unstructured_shift: bool | None = None,
    ) -> backend.Backend[Any]:
        """gt4py's function of this name, which is deprecated."""
        translation = functools.partial(
            dace.make_dace_translator,
            auto_optimize_args=optimization_args,
            async_sdfg_call=async_sdfg_call,
            use_metrics=use_metrics,
            disable_field_origin_on_program_arguments=use_zero_origin,
            use_max_domain_range_on_unstructured_shift=use_max_domain_range_on_unstructured_shift,
        )
        shared = dace.DaCeConfig(
            gpu=gpu,
            auto_optimize=auto_optimize,
            external_workspace=external_workspace,
            unstructured_horizontal_has_unit_stride=unstructured_horizontal_has_unit_stride,
        )
        return dace.make_dace_toolchain(shared, translation=translation)

    def make_gtfn_backend(gpu: bool, steps: Mapping[str, Any], translation: Mapping[str, Any]) -> backend.Backend[Any]:
        """A GTFN backend with options of its steps, and of its translation step alone."""
        translator = functools.partial(gtfn.make_gtfn_translation, **translation)
        return gtfn.make_gtfn_toolchain(gtfn.GTFNConfig(gpu=gpu, **steps), translation=translator)


__all__ = [
    "BindingSource",
    "CompilableProgramDef",
    "CompilationArtifact",
    "ConcreteProgramDef",
    "ExecutableProgram",
    "ExecutorRunner",
    "ExtensionSource",
    "ProcessSettings",
    "ProgramSource",
    "SDFGCodeSpec",
    "SourceCodeSpec",
    "add_trace_markers",
    "is_fingerprinted_field",
    "make_connectivity",
    "make_dace_backend",
    "make_field",
    "make_gtfn_backend",
    "prepare_workers",
    "process_settings",
    "replace_default_runner",
    "versions",
]


def replace_default_runner(runner: type) -> None:
    """
    Makes `runner` the default runner of gt4py's compilations. It wraps the present default runner, and replaces the one
    that gt4py makes after each reset.
    """
    with runners._default_runner_lock:
        runners.from_config = runner
        if runners._default_runner is not None and not isinstance(runners._default_runner, runner):
            runners._default_runner = runner(runners._default_runner)


def prepare_workers(runner: runners.Runner, prepare: Callable[[], None]) -> None:
    """Lets each worker process that a runner starts from now on call a function of a module first."""
    pool = getattr(runner, "_pool", None)
    if isinstance(pool, ProcessPoolExecutor):
        pool_of_cpython = cast(Any, pool)
        initializer, arguments = pool_of_cpython._initializer, pool_of_cpython._initargs
        pool_of_cpython._initializer, pool_of_cpython._initargs = _prepare, (prepare, initializer, arguments)


@dataclasses.dataclass(frozen=True)
class ProcessSettings:
    """How many processes a runner of gt4py's uses, and the function that each calls first, with its arguments."""

    workers: int
    prepare: tuple[Callable[..., None], tuple[Any, ...]]


def process_settings(runner: runners.Runner) -> ProcessSettings | None:
    """The settings of a runner that uses processes; None for other runners, also those of a user."""
    if type(runner) is not runners.ProcessRunner:
        return None
    pool = cast(Any, runner._pool)
    return ProcessSettings(pool._max_workers, (pool._initializer, pool._initargs))


class ExecutorRunner(runners.ProcessRunner):
    """gt4py's runner with another executor than its own."""

    def __init__(self, executor: Executor) -> None:
        self._pool = cast(ProcessPoolExecutor, executor)


def _prepare(prepare: Callable[[], None], initializer: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    prepare()
    if initializer is not None:
        initializer(*arguments)


def versions() -> dict[str, Any]:
    """The versions of all packages that compile a program."""
    # GT4PY_BUILD_CACHE_VERSION_ID may replace the version in gt4py's own keys.
    found, *edited = version_of("gt4py")
    return {**dace_versions(), "gt4py": [*dict.fromkeys((found, config.BUILD_CACHE_VERSION_ID)), *edited]}


def number_of_nodes(program: CompilableProgramDef) -> int:
    """The nodes of a lowered program in gt4py's IR."""
    return len(trees.pre_walk_values(program.data).if_isinstance(concepts.Node).to_list())
