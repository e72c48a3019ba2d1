"""Which backend `setup_program` makes of what icon4py's granules pass, and what it refuses before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gt4py.next import backend as gtx_backend
from gt4py.next.program_processors.runners.dace import transformations
from icon4py.model.common import model_backends
from icon4py.model.common.model_backends import DeviceType

from gtstub.errors import ConfigError
from gtstub.frameworks import icon4py
from gtstub.frameworks.hooks import remove_access_node_copies
from tests.support import small_programs as small

CPU = model_backends.CPU
DACE = model_backends.make_custom_dace_backend
GTFN = model_backends.make_custom_gtfn_backend


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own table, empty at first, on a machine of which nothing is known."""
    file = tmp_path / "mine.toml"
    file.touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GTSTUB_BACKENDS", str(file))
    monkeypatch.setattr(icon4py, "arch", lambda device: "")
    return file


def chosen(backend: Any) -> gtx_backend.Backend[Any]:
    found = icon4py._choose_backend("p", backend)
    assert found is not None
    return found


def optimization_args(backend: gtx_backend.Backend[Any]) -> dict[str, Any]:
    step = backend.executor.translation.step
    return {name: value for name, value in step.auto_optimize_args.items() if name != "unit_strides_kind"}


# --- Options ----------------------------------------------------------------------------------------------------------


def test_options_win_over_the_table_as_objects_or_as_names(mine: Path) -> None:
    mine.write_text("[program.p.dace.optimization_args]\ngpu_maxnreg = 80\nfuse_tasklets = true\n")
    hook = transformations.GT4PyAutoOptHook.AfterToGPU
    memory = transformations.TransientMemoryMode.PERSISTENT
    expected = {
        "gpu_maxnreg": 64,
        "gpu_block_size_2d": (64, 6),
        "fuse_tasklets": True,
        "transient_memory_mode": memory,
        "optimization_hooks": {hook: remove_access_node_copies},
    }
    for hooks, mode in (
        ({hook: remove_access_node_copies}, memory),
        ({"AfterToGPU": "gtstub.frameworks.hooks:remove_access_node_copies"}, "PERSISTENT"),
    ):
        given = {
            "gpu_maxnreg": 64,
            "gpu_block_size_2d": (64, 6),
            "transient_memory_mode": mode,
            "optimization_hooks": hooks,
        }
        assert optimization_args(chosen({"device": CPU, "optimization_args": given})) == expected
    for none in (None, {"optimization_hooks": None}):
        unchanged = optimization_args(chosen({"device": CPU, "optimization_args": none}))
        assert unchanged.pop("optimization_hooks", {}) == {}
        assert unchanged == {"gpu_maxnreg": 80, "fuse_tasklets": True}


def test_a_workspace_reaches_the_backend() -> None:
    workspace: dict[Any, Any] = {}
    assert getattr(chosen({"device": CPU, "external_workspace": workspace}), "external_workspace", None) is workspace


class Stream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 4096


def test_a_stream_reaches_the_backend() -> None:
    stream = Stream()
    backend = chosen({"device": DeviceType.CUDA, "stream": stream})
    assert getattr(backend, "stream", None) is stream


def test_options_of_gtfn_reach_its_steps(mine: Path) -> None:
    mine.write_text("[program.p]\ngtfn.use_imperative_backend = true\n")
    backend = chosen({"backend_factory": GTFN, "device": CPU, "enable_itir_transforms": False})
    step = backend.executor.translation.step
    assert (step.enable_itir_transforms, step.use_imperative_backend) == (False, True)


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (
            {"auto_optimise": True},
            "'auto_optimise' of backend 'gtstub' for program 'p' is unknown. Did you mean: 'auto_optimize'?",
        ),
        (
            {"async_sdfg_call": "yes"},
            "'async_sdfg_call' of backend 'gtstub' for program 'p' must be of type 'bool', but is 'yes'.",
        ),
        (
            {"backend_factory": DACE, "optimization_args": {"make_persistent": True}},
            "'optimization_args.make_persistent' of backend 'gtstub' for program 'p' is unknown."
            " Did you mean: 'transient_memory_mode'?",
        ),
        (
            {"optimization_args": {"transient_memory_mode": ["PERSISTENT"]}},
            "'optimization_args.transient_memory_mode' of backend 'gtstub' for program 'p' cannot be ['PERSISTENT']."
            " Did you mean: 'PERSISTENT'?",
        ),
        (
            {"optimization_args": ["fuse_tasklets"]},
            "'optimization_args' of backend 'gtstub' for program 'p' must be a table, but is ['fuse_tasklets'].",
        ),
        (
            {"devise": CPU},
            "'devise' of backend 'gtstub' for program 'p' is unknown. Did you mean: 'device'?",
        ),
        (
            {"backend_factory": GTFN, "enable_transforms": False},
            "'enable_transforms' of backend 'gtfn' for program 'p' is unknown. Did you mean: 'enable_itir_transforms'?",
        ),
    ],
)
def test_what_the_backend_does_not_know_is_refused(descriptor: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        icon4py.setup_program(program=small.scan, backend={"device": CPU, **descriptor})
    assert str(refusal.value) == "Option " + message.replace("program 'p'", "program 'scan'")


# --- Devices and factories --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        (DeviceType.CUDA, "cuda"),
        (DeviceType.ROCM, "rocm"),
        ({"device": DeviceType.ROCM}, "rocm"),
        ({"device": DeviceType.ROCM, "backend_factory": DACE}, "rocm"),
        ({"device": model_backends.GPU}, "rocm" if model_backends.GPU == DeviceType.ROCM else "cuda"),
        ({}, "cpu"),
    ],
)
def test_a_device_takes_its_section(mine: Path, backend: Any, found: str) -> None:
    sections = enumerate(("cpu", "cuda", "rocm"))
    mine.write_text("\n".join(f"device.{name}.dace.optimization_args.gpu_maxnreg = {n}" for n, name in sections))
    assert optimization_args(chosen(backend)) == {"gpu_maxnreg": ("cpu", "cuda", "rocm").index(found)}


def test_a_device_that_this_machine_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icon4py, "arch", lambda device: "sm_90")
    with pytest.raises(ConfigError) as refusal:
        chosen(DeviceType.ROCM)
    message = "Program 'p' with tag 'GPU' runs on a GPU of ROCm, as 'gfx90a', but the architecture is 'sm_90'."
    assert str(refusal.value) == message


@pytest.mark.parametrize("backend", ["cpu", 1, ["device"], DACE])
def test_what_is_no_backend_is_refused(backend: Any) -> None:
    with pytest.raises(TypeError) as refusal:
        icon4py.setup_program(program=small.scan, backend=backend)
    assert str(refusal.value) == (
        "The backend of program 'scan' must be a device, 'model_backends.CPU' or 'model_backends.GPU', a backend"
        f" descriptor, a backend of gt4py or None, but is {backend!r}."
    )


@pytest.mark.parametrize("device", ["cpu", 1, "CPU"])
@pytest.mark.parametrize("factory", [None, DACE, GTFN])
def test_what_is_no_device_is_refused(device: Any, factory: Callable[..., Any] | None) -> None:
    with pytest.raises(TypeError) as refusal:
        chosen({"device": device, "backend_factory": factory})
    message = f"'device' of program 'p' must be 'model_backends.CPU' or 'model_backends.GPU', but is {device!r}."
    assert str(refusal.value) == message


def test_what_is_no_factory_is_refused() -> None:
    with pytest.raises(TypeError) as refusal:
        chosen({"device": CPU, "backend_factory": "dace"})
    assert str(refusal.value) == "'backend_factory' of program 'p' must be a function, but is 'dace'."
