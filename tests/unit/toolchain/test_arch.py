"""What the device is called, and what compiles for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import archspec.cpu
import pytest

from gtstub.entries.toolchain import arch as module
from gtstub.entries.toolchain.arch import arch, toolkit


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is set or known from before, and cupy is not there: it would know a real GPU."""
    monkeypatch.delenv("GTSTUB_ARCH", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    module._gpu.cache_clear()
    yield
    module._gpu.cache_clear()


def tool(directory: Path, name: str, output: str) -> None:
    """A driver's tool that prints `output`: there is a GPU on hardly any machine that runs the tests."""
    file = directory / name
    file.write_text(f"#!/bin/sh\nprintf '{output}'\n")
    file.chmod(0o755)


def test_a_cpu_has_the_name_that_archspec_gives_it() -> None:
    assert arch("cpu") in archspec.cpu.TARGETS


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        ("nvidia-smi", "9.0\n8.0\n", "sm_90"),
        ("nvidia-smi", "12.0\n", "sm_120"),
        ("nvidia-smi", "No devices were found\n", ""),
        ("rocm_agent_enumerator", "gfx000\ngfx90a\n", "gfx90a"),
        ("rocm_agent_enumerator", "gfx000\n", ""),
        ("nothing", "", ""),
    ],
)
def test_a_gpu_has_the_name_that_its_compiler_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, output: str, expected: str
) -> None:
    tool(tmp_path, name, output)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert arch("gpu") == expected


def test_a_tool_that_fails_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 9.0\nexit 1\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert arch("gpu") == ""


def test_the_environment_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = arch("cpu")
    monkeypatch.setenv("GTSTUB_ARCH", "sm_70")
    assert (arch("cpu"), arch("gpu")) == (found, "sm_70")
    monkeypatch.setenv("GTSTUB_ARCH", "neoverse_v2, gfx90a")
    assert (arch("cpu"), arch("gpu")) == ("neoverse_v2", "gfx90a")


@pytest.mark.parametrize(
    ("device", "compiler", "record"), [("cuda", "nvcc", "version.json"), ("rocm", "hipcc", ".info/version")]
)
def test_a_toolkit_is_known_by_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, compiler: str, record: str
) -> None:
    for variable in ("CUDACXX", "HIPCXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert toolkit(device) == ""
    (tmp_path / "bin").mkdir()
    tool(tmp_path / "bin", compiler, "never called")
    size = (tmp_path / "bin" / compiler).stat().st_size
    assert toolkit(device) == f"{compiler} of {size} bytes"
    (tmp_path / record).parent.mkdir(exist_ok=True)
    (tmp_path / record).write_text("12.4.1\n")
    assert toolkit(device) == f"{compiler} 12.4.1"
