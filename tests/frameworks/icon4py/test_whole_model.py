"""`use`: what of icon4py it replaces, what a backend remembers that icon4py's driver has made, and what stays."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gt4py.next import backend as gtx_backend
from icon4py.model.atmosphere.dycore import velocity_advection
from icon4py.model.common import model_backends, model_options
from icon4py.model.common.model_backends import DeviceType

import gtstub
from gtstub.errors import ConfigError
from gtstub.frameworks import icon4py
from gtstub.frameworks.gt4py.backend import StubBackend
from tests.support import small_programs as small
from tests.support.own_cache import use_own_cache

THEIRS = (model_options.setup_program, model_options.customize_backend)
BACKENDS = model_backends.BACKENDS


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's own table; and icon4py as it was, after the test."""
    file = tmp_path / "mine.toml"
    file.write_text("[program.scan.dace]\noptimization_args.gpu_maxnreg = 80\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GTSTUB_BACKENDS", "")
    monkeypatch.setattr(icon4py, "arch", lambda device: "")
    yield file
    for module in (model_options, velocity_advection):
        vars(module)["setup_program"] = THEIRS[0]
    vars(model_options)["customize_backend"] = THEIRS[1]


def optimization_args(backend: Any) -> Any:
    return backend.executor.translation.step.auto_optimize_args


def test_all_modules_get_gtstubs_functions() -> None:
    for _ in range(2):
        icon4py.use()
        assert model_options.setup_program is icon4py.setup_program
        assert model_options.customize_backend is icon4py.customize_backend
        assert velocity_advection.setup_program is icon4py.setup_program


@pytest.mark.parametrize("described", [DeviceType.CPU, BACKENDS["cpu"], BACKENDS["dace_cpu"]])
def test_a_backend_that_the_driver_made_counts_as_what_it_was_made_of(mine: Path, described: Any) -> None:
    """icon4py's `main.py` makes it without a program, and hands it to all granules."""
    icon4py.use(backends=mine)
    backend = model_options.customize_backend(program=None, backend=described)
    assert isinstance(backend, StubBackend)
    assert model_backends.get_allocator(backend) is backend
    assert "gpu_maxnreg" not in optimization_args(backend)
    again = model_options.customize_backend(program=small.scan, backend=backend)
    assert again is backend
    assert optimization_args(icon4py._choose_backend("scan", backend))["gpu_maxnreg"] == 80
    copy = dataclasses.replace(backend, name="mine")
    assert icon4py._choose_backend("scan", copy) is copy


def test_options_of_a_descriptor_reach_each_program(mine: Path) -> None:
    icon4py.use(backends=[mine])
    descriptor = {**BACKENDS["dace_cpu"], "optimization_args": {"fuse_tasklets": True}}
    backend = model_options.customize_backend(program=None, backend=descriptor)
    descriptor.clear()  # as icon4py does, which takes the factory out of the descriptor
    chosen = optimization_args(icon4py._choose_backend("scan", backend))
    assert {name: chosen[name] for name in ("gpu_maxnreg", "fuse_tasklets")} == {
        "gpu_maxnreg": 80,
        "fuse_tasklets": True,
    }


def test_what_is_not_dace_stays() -> None:
    icon4py.use()
    assert model_options.customize_backend(program=None, backend=BACKENDS["embedded"]) is None
    gtfn = model_options.customize_backend(program=None, backend=BACKENDS["gtfn_cpu"])
    assert isinstance(gtfn, gtx_backend.Backend)
    assert "gtfn" in gtfn.name
    own = model_backends.make_custom_dace_backend(device=DeviceType.CPU)
    assert model_options.customize_backend(program=small.scan, backend=own) is own
    assert icon4py._choose_backend("scan", own) is own


def test_a_program_of_a_model_is_gtstubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_cache(tmp_path / "cache", monkeypatch)
    icon4py.use()
    backend = model_options.customize_backend(program=None, backend=BACKENDS["dace_cpu"])
    program = model_options.setup_program(program=small.in_place, backend=backend)
    assert isinstance(program, gtstub.CompiledProgram)
    program.wait()


@pytest.mark.parametrize(("content", "error"), [(None, OSError), ("[programs]", ConfigError)])
def test_with_a_table_that_cannot_be_read_nothing_is_replaced(
    tmp_path: Path, content: str | None, error: type[Exception]
) -> None:
    table = tmp_path / "table.toml"
    if content is not None:
        table.write_text(content)
    with pytest.raises(error):
        icon4py.use(backends=table)
    assert os.environ["GTSTUB_BACKENDS"] == ""
    assert (model_options.setup_program, model_options.customize_backend) == THEIRS


@pytest.mark.parametrize("name", ["model", "./model.py"])
def test_a_model_runs_without_a_changed_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "model.py").write_text(
        "import sys\nimport beside\nfrom icon4py.model.common.model_options import setup_program\n"
        "print(__name__, setup_program.__module__, *sys.argv[1:])\n"
    )
    command = [sys.executable, "-m", "gtstub.frameworks.icon4py", name, "a", "--b"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "__main__ gtstub.frameworks.icon4py a --b\n", done.stderr


def test_a_model_must_be_named() -> None:
    with pytest.raises(SystemExit, match="MODULE"):
        icon4py.main([])
