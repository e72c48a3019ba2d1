"""
The architecture of the device that programs run on, under the name that tables of backends use (docs/backends.md).

The names of GPUs are those of their compilers ('sm_90', 'gfx90a'); the names of CPUs are those of archspec and Spack
('zen4', 'neoverse_v2').
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

from gtstub import settings

type Device = Literal["cpu", "gpu"]

GPU_PREFIXES = ("sm_", "gfx")


def arch(device: Device) -> str:
    """
    The architecture of this machine's CPU or of its first visible GPU; empty if it is unknown.

    GTSTUB_ARCH overrides it with one name, or with those of CPU and GPU, separated by a comma ('neoverse_v2,sm_90').
    """
    return named_arch(device) or (_cpu() if device == "cpu" else _gpu())


def named_arch(device: Device) -> str:
    """The architecture that GTSTUB_ARCH names for the CPU or for the GPU; empty if it names none."""
    names = (name for name in settings.archs() if name.startswith(GPU_PREFIXES) == (device == "gpu"))
    return next(names, "")


def toolkit(device: str) -> str:
    """
    The version of the CUDA or ROCm toolkit (`device` 'cuda' or 'rocm'), read from its installation. If the installation
    does not contain it, the size of the compiler; empty without a compiler. No process is started, because this
    function runs for every program.
    """
    name, variable, record = {
        "cuda": ("nvcc", "CUDACXX", "version.json"),
        "rocm": ("hipcc", "HIPCXX", ".info/version"),
    }[device]
    compiler = shutil.which(os.environ.get(variable) or name)
    if compiler is None:
        return ""
    path = Path(compiler).resolve()
    try:
        return f"{name} {(path.parents[1] / record).read_text(encoding='utf-8').strip()}"
    except OSError:
        return f"{name} of {path.stat().st_size} bytes"


@cache
def _cpu() -> str:
    from archspec.cpu import host

    return str(host().name)


@cache
def _gpu() -> str:
    """From cupy, which respects the visible devices; without cupy, from the driver's tool."""
    return (
        _from_cupy()
        or _from_tool(_cuda_name, "nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
        or (_from_tool(_rocm_name, "rocm_agent_enumerator"))
    )


def _from_cupy() -> str:
    try:
        import cupy

        if cupy.cuda.runtime.is_hip:
            return _rocm_name(cupy.cuda.runtime.getDeviceProperties(0)["gcnArchName"].decode())
        return f"sm_{cupy.cuda.Device(0).compute_capability}"
    except Exception:  # cupy may be missing, and has different errors for a missing driver and a missing device.
        return ""


def _from_tool(name: Callable[[str], str], *command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(filter(None, map(name, done.stdout.splitlines())), "")


def _cuda_name(line: str) -> str:
    """Converts '9.0' to 'sm_90'."""
    major, _, minor = line.strip().partition(".")
    return f"sm_{major}{minor}" if major.isdigit() and minor.isdigit() else ""


def _rocm_name(line: str) -> str:
    """Converts 'gfx90a:sramecc+:xnack-' to 'gfx90a'. ROCm's name of the CPU, 'gfx000', becomes empty."""
    name = line.strip().partition(":")[0]
    return name if name.startswith("gfx") and name != "gfx000" else ""
