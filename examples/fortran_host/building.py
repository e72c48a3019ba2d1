"""The build of the two hosts: what it needs, py2fgen's bindings, and CMake over the committed granule."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from gtstub import install
from gtstub.entries.toolchain import compiler

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
COMMITTED = FOLDER / "diffusion"
"""The generated code of the granule, and its description."""

GFORTRAN = "gfortran is not installed; get it with: apt-get install gfortran"
PY2FGEN = "icon4py's py2fgen is not installed; get it with: make .venv/.py2fgen"


def missing() -> str:
    """What has to be installed before there can be a Fortran host; empty if nothing."""
    return "" if shutil.which("gfortran") else GFORTRAN


def missing_for_embedding() -> str:
    """What stands in the way of a host with embedded Python; empty if nothing."""
    if not all(importlib.util.find_spec(f"icon4py.{name}") for name in ("bindings", "tools")):
        return PY2FGEN
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return "this Python has no shared library (libpython), which embedding needs"
    return ""


def check_committed(exported: Path) -> None:
    """Raises SystemExit unless the generated code of an exported granule is the committed one."""
    for file in sorted(COMMITTED.iterdir()):
        if file.read_bytes() != (exported / file.name).read_bytes():
            raise SystemExit(
                f"The committed file '{file.relative_to(ROOT)}' is not what the export writes: 'make fortran-demo "
                f"ARGS=--commit' writes it anew."
            )


def commit(exported: Path) -> None:
    """Writes the committed code anew."""
    COMMITTED.mkdir(exist_ok=True)
    for suffix in (".h", ".c", ".f90"):
        shutil.copy2(exported / f"diffusion_granule{suffix}", COMMITTED)
    shutil.copy2(exported / "granule.json", COMMITTED)


def build(folder: Path, bindings: Path | None) -> Path:
    """Builds the hosts in `folder`; returns CMake's folder."""
    build = folder / "hosts"
    options = {
        "CMAKE_PREFIX_PATH": install.FOLDER,
        "CMAKE_Fortran_COMPILER": shutil.which("gfortran"),
        "BINDINGS": bindings or "",
    }
    cmake = compiler.find_cmake()
    command = [cmake, "-S", FOLDER, "-B", build, *(f"-D{name}={value}" for name, value in options.items())]
    _run(command)
    _run([cmake, "--build", build, "--parallel"])
    return build


def make_bindings(folder: Path) -> Path:
    """py2fgen's Fortran module and library for the functions of embedded.py."""
    folder.mkdir(parents=True, exist_ok=True)
    functions = "torus_init,diffusion_init,diffusion_run,diffusion_hand_over"
    command = [sys.executable, "-m", "icon4py.tools.py2fgen", "examples.fortran_host.embedded", functions]
    rpath = str(sysconfig.get_config_var("LIBDIR"))
    _run([*command, "icon4py_diffusion", "--output-path", folder, "--rpath", rpath])
    return folder


def _run(command: list[Any]) -> None:
    done = subprocess.run(list(map(str, command)), cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}\nThis failed: {' '.join(map(str, command))}")
