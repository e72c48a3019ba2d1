"""Backends that tables choose: what gt4py is given, and what is refused that gt4py would swallow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dace
import pytest
from gt4py.next import backend as gtx_backend
from gt4py.next import config
from gt4py.next.program_processors.runners.dace import transformations
from gt4py.next.program_processors.runners.dace.workflow import backend as dace_backend
from icon4py.model.common import dimension, model_backends, model_options

from gtstub.errors import ConfigError
from gtstub.frameworks.backends.choice import Tag, choose
from gtstub.frameworks.backends.tables import Table, load_tables, read_table
from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.frameworks.hooks import remove_access_node_copies

PROGRAMS = (
    "vertically_implicit_solver_at_predictor_step",
    "vertically_implicit_solver_at_corrector_step",
    "compute_rho_theta_pgrad_and_update_vn",
    "graupel_run",
)
"""Those that icon4py has options for."""

HOOK = transformations.GT4PyAutoOptHook.TopLevelDataFlowStep


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Table, ...]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GTSTUB_BACKENDS", raising=False)
    return load_tables()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


def made(text: str, file: Path, tag: str = "DACE_CPU") -> gtx_backend.Backend[Any]:
    """The backend of program 'p', for which `text` stands in the table."""
    file.write_text(f"[program.p]\n{text}\n")
    return make_chosen_backend(choose("p", tag, "", [read_table(file)]))


def translator(backend: gtx_backend.Backend[Any]) -> Any:
    """The step that makes an SDFG: it has the options."""
    step = backend.executor.translation
    return getattr(step, "step", step)


# --- Kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", Tag)
def test_every_tag_makes_its_kind_of_backend(shipped: Sequence[Table], tag: Tag) -> None:
    backend = make_chosen_backend(choose("any", tag, "", shipped))
    kind, _, device = str(tag).rpartition("_")
    assert (
        type(backend)
        is {
            "": StubBackend,
            "GTSTUB": StubBackend,
            "DACE": dace_backend.DaCeBackend,
            "GTFN": gtx_backend.Backend,
        }[kind]
    )
    assert f"_{device.lower()}" in backend.name
    if kind == "GTFN":
        assert backend.name.startswith("run_gtfn")


@pytest.mark.parametrize("tag", ["DACE_CPU", "DACE_GPU", "GTSTUB_CPU", "GTSTUB_GPU"])
@pytest.mark.parametrize("program", ["any", *PROGRAMS])
def test_the_shipped_table_does_what_icon4py_does(shipped: Sequence[Table], program: str, tag: str) -> None:
    device = model_backends.CPU if tag.endswith("CPU") else model_backends.DeviceType.CUDA
    descriptor = model_options.get_dace_options(program, device=device, optimization_args={})
    optimization_args = descriptor.pop("optimization_args")
    ignored = {optimization_args.pop(name, None) for name in ("gpu_memory_pool", "make_persistent")}
    assert ignored == ({False, True} if program == "graupel_run" else {None})
    theirs = translator(dace_backend.make_dace_backend(**_as_custom_dace_backend(descriptor, optimization_args)))
    ours = translator(make_chosen_backend(choose(program, tag, "sm_90" if tag.endswith("GPU") else "zen4", shipped)))
    expected, found = dict(vars(theirs)), dict(vars(ours))
    expected_args, found_args = expected.pop("auto_optimize_args"), found.pop("auto_optimize_args")
    if HOOK in expected_args.get("optimization_hooks", {}):
        assert found_args.pop("optimization_hooks") == {HOOK: remove_access_node_copies}
        del expected_args["optimization_hooks"]
    if tag.endswith("CPU"):  # They say what a GPU's blocks are on a CPU too, where it means nothing.
        for name in ("gpu_maxnreg", "gpu_block_size_2d"):
            expected_args.pop(name, None)
    if "gpu_block_size_2d" in found_args:
        found_args["gpu_block_size_2d"] = tuple(found_args["gpu_block_size_2d"])
    assert found == expected
    assert found_args == expected_args


def _as_custom_dace_backend(descriptor: dict[str, Any], optimization_args: dict[str, Any]) -> dict[str, Any]:
    """What icon4py's `make_custom_dace_backend` passes to gt4py."""
    return {
        "gpu": descriptor["device"] != model_backends.CPU,
        "optimization_args": optimization_args,
        "unstructured_horizontal_has_unit_stride": True,
        "use_zero_origin": descriptor.get("use_zero_origin", False),
    }


def test_options_of_gtfn_reach_its_steps(file: Path) -> None:
    backend = made(
        "gtfn.enable_itir_transforms = false\n"
        "gtfn.use_imperative_backend = true\n"
        "gtfn.unstructured_horizontal_has_unit_stride = true\n"
        'gtfn.cmake_build_type = "DEBUG"',
        file,
        "GTFN_CPU",
    )
    step = translator(backend)
    assert (step.enable_itir_transforms, step.use_imperative_backend) == (False, True)
    assert backend.executor.bindings.unstructured_horizontal_has_unit_stride is True
    assert backend.executor.compilation.builder_factory.cmake_build_type is config.CMakeBuildType.DEBUG


def test_names_become_what_they_name(file: Path) -> None:
    text = """
        [program.p.dace.optimization_args]
        blocking_dims = ["icon4py.model.common.dimension:KDim"]
        demote_fields = ["a"]
        gpu_block_size = "32,4"
        transient_memory_mode = "PERSISTENT"
        optimization_hooks.AfterToGPU = "gtstub.frameworks.hooks:remove_access_node_copies"
    """
    arguments = translator(made(text, file)).auto_optimize_args
    del arguments["unit_strides_kind"]
    assert arguments == {
        "blocking_dims": [dimension.KDim],
        "demote_fields": ["a"],
        "gpu_block_size": "32,4",
        "transient_memory_mode": transformations.TransientMemoryMode.PERSISTENT,
        "optimization_hooks": {transformations.GT4PyAutoOptHook.AfterToGPU: remove_access_node_copies},
    }


def test_a_table_overrides_the_configuration_of_dace(file: Path) -> None:
    text = 'gtstub.dace_config.compiler.cpu.args = "-O2 -fsanitize=a:b"\ngtstub.dace_config.compiler.build_jobs = 3'
    backend = made(text, file, "GTSTUB_CPU")
    with backend.executor.compilation.build.context():
        assert dace.Config.get("compiler", "cpu", "args") == "-O2 -fsanitize=a:b"
        assert dace.Config.get("compiler", "build_jobs") == 3


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "text", "message"),
    [
        (
            "DACE_CPU",
            "dace.optimization_args.make_persistent = true",
            "'optimization_args.make_persistent' of backend 'dace' for program 'p' is unknown."
            " Did you mean: 'transient_memory_mode'?",
        ),
        (
            "GTSTUB_CPU",
            "dace.optimization_args.gpu_memory_pool = false",
            "'optimization_args.gpu_memory_pool' of backend 'gtstub' for program 'p' is unknown."
            " Did you mean: 'transient_memory_mode'?",
        ),
        (
            "GTSTUB_GPU",
            "gtstub.optimization_args.gpu_maxnregs = 80",
            "'optimization_args.gpu_maxnregs' of backend 'gtstub' for program 'p' is unknown."
            " Did you mean: 'gpu_maxnreg'?",
        ),
        (
            "DACE_CPU",
            "dace.optimization_args.optimization_hooks.TopLevelDataFlowSteps = 'm:f'",
            "'optimization_args.optimization_hooks.TopLevelDataFlowSteps' of backend 'dace' for program 'p' is unknown."
            " Did you mean: 'TopLevelDataFlowStep'?",
        ),
        (
            "GTSTUB_CPU",
            "gtstub.dace_config.compiler.cpu.arg = '-O2'",
            "'dace_config.compiler.cpu.arg' of backend 'gtstub' for program 'p' is unknown. Did you mean: 'args'?",
        ),
        (
            "GTSTUB_CPU",
            "gtstub.dace_config.compiler.build_jobs = '2'",
            "'dace_config.compiler.build_jobs' of backend 'gtstub' for program 'p' must be of type 'int', but is '2'.",
        ),
        (
            "DACE_CPU",
            "dace.auto_optimise = false",
            "'auto_optimise' of backend 'dace' for program 'p' is unknown. Did you mean: 'auto_optimize'?",
        ),
        (
            "GTFN_CPU",
            "gtfn.enable_transforms = false",
            "'enable_transforms' of backend 'gtfn' for program 'p' is unknown. Did you mean: 'enable_itir_transforms'?",
        ),
        (
            "GTFN_GPU",
            "gtfn.cmake_build_type = 'Debug'",
            "'cmake_build_type' of backend 'gtfn' for program 'p' cannot be 'Debug'. Did you mean: 'DEBUG'?",
        ),
        (
            "DACE_CPU",
            "dace.auto_optimize = 1",
            "'auto_optimize' of backend 'dace' for program 'p' must be of type 'bool', but is 1.",
        ),
        (
            "DACE_CPU",
            "dace.optimization_args.gpu_maxnreg = 'eighty'",
            "'optimization_args.gpu_maxnreg' of backend 'dace' for program 'p' must be of type 'Optional[int]',"
            " but is 'eighty'.",
        ),
        (
            "DACE_CPU",
            "dace.optimization_args = 3",
            "'optimization_args' of backend 'dace' for program 'p' must be a table, but is 3.",
        ),
        (
            "DACE_CPU",
            "dace.optimization_args.optimization_hooks.AfterToGPU = 'function'",
            "'optimization_args.optimization_hooks.AfterToGPU' of backend 'dace' for program 'p'"
            " must be the name of a function, 'module:function', but is 'function'.",
        ),
        (
            "DACE_CPU",
            "dace.optimization_args.optimization_hooks.AfterToGPU = 'gtstub.frameworks.hooks:nothing'",
            "'optimization_args.optimization_hooks.AfterToGPU' of backend 'dace' for program 'p' is"
            " 'gtstub.frameworks.hooks:nothing', which cannot be imported:"
            " module 'gtstub.frameworks.hooks' has no attribute 'nothing'.",
        ),
    ],
)
def test_what_a_backend_does_not_know_is_refused_with_its_line(file: Path, tag: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        made(text, file, tag)
    assert str(refusal.value) == f"'{file}', line 2: Option {message}"


@pytest.mark.parametrize("name", ["gpu", "constant_symbols", "unit_strides_kind"])
def test_what_gt4py_itself_fills_is_no_option(file: Path, name: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        made(f"dace.optimization_args.{name} = true", file)
    assert f"'optimization_args.{name}' of backend 'dace' for program 'p' is unknown." in str(refusal.value)


@pytest.mark.parametrize(
    ("optimization_args", "message"),
    [
        (
            {"make_persistent": True},
            "There is no optimization argument 'make_persistent'. Did you mean: 'transient_memory_mode'?",
        ),
        (
            {"fuse_tasklet": True},
            "There is no optimization argument 'fuse_tasklet'. Did you mean: 'fuse_tasklets'?",
        ),
        (
            {"optimization_hooks": {"AfterToGPU": remove_access_node_copies}},
            "Optimization hook 'AfterToGPU' is not a 'GT4PyAutoOptHook'.",
        ),
    ],
)
def test_make_backend_refuses_what_gt4py_ignores(optimization_args: dict[str, Any], message: str) -> None:
    make_backend(gpu=False, optimization_args={"fuse_tasklets": True, "optimization_hooks": None})
    dace_backend.make_dace_backend(gpu=False, optimization_args=optimization_args)  # Not a word.
    with pytest.raises(ConfigError) as refusal:
        make_backend(gpu=False, optimization_args=optimization_args)
    assert str(refusal.value) == message


@pytest.mark.parametrize("tag", ["DACE_CPU", "GTSTUB_CPU"])
def test_an_override_that_gt4py_ignores_is_refused(shipped: Sequence[Table], tag: str) -> None:
    choice = choose("graupel_run", tag, "", shipped)
    backend = make_chosen_backend(choice, {"optimization_args": {"gpu_maxnreg": 64}})
    assert translator(backend).auto_optimize_args.items() >= {"fuse_tasklets": True, "gpu_maxnreg": 64}.items()
    with pytest.raises(ConfigError) as refusal:
        make_chosen_backend(choice, {"optimization_args": {"gpu_maxnregs": 64}})
    assert str(refusal.value) == (
        f"Option 'optimization_args.gpu_maxnregs' of backend '{choice.backend}' for program 'graupel_run' is unknown."
        " Did you mean: 'gpu_maxnreg'?"
    )


# --- Hooks ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*The whole range of the first node is not written:UserWarning")
def test_the_hook_removes_transients_between_an_array_and_itself() -> None:
    sdfg = dace.SDFG("copies")
    sdfg.add_array("a", [10], dace.float64)
    for name in ("t", "u"):
        sdfg.add_transient(name, [10], dace.float64)
    state = sdfg.add_state()
    first, t, u, last = (state.add_access(name) for name in ("a", "t", "u", "a"))
    for node, indices in ((first, "0:5"), (u, "5:10")):
        state.add_mapped_tasklet(
            f"write_{node.data}",
            {"i": indices},
            {},
            "out = i",
            {"out": dace.Memlet(f"{node.data}[i]")},
            output_nodes={node.data: node},
            external_edges=True,
        )
    state.add_nedge(first, t, dace.Memlet("a[0:5] -> [0:5]"))
    state.add_nedge(t, u, dace.Memlet("t[0:5] -> [0:5]"))
    state.add_nedge(u, last, dace.Memlet("u[5:10] -> [5:10]"))
    remove_access_node_copies(sdfg)
    assert {node.data for node in state.data_nodes()} == {"a"}
