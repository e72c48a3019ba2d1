"""The requirements of gtstub on this machine: which are met, and how to meet the others. For 'gtstub doctor'."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import platform
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from gtstub.errors import GtstubError, ToolchainError
from gtstub.install import RUNTIME, how_to_install
from gtstub.toolchain.answer import find_cmake
from gtstub.toolchain.compiler import find
from gtstub.toolchain.versions import INSTALL_GT4PY, problem_of_dace, problem_of_gt4py

REINSTALL = (
    "The installation of gtstub is incomplete: 'pip install --force-reinstall --no-deps .' in a checkout of gtstub, or"
    " with the path of its wheel instead of '.'."
)

SOURCE = """
#include "gtstub/stub.h"
GTS_EXPORT const char *gtstub_doctor(void);
GTS_EXPORT const char *gtstub_doctor(void) { return gts_dtype_name(GTS_BOOL); }
"""
"""A stub reduced to its requirements on a compiler: it includes the headers and links the runtime."""


@dataclasses.dataclass(frozen=True)
class Check:
    """
    One requirement. `found` describes the state of the machine; `advice`, if not empty, the remedy. A missing optional
    package is ok and has an advice.
    """

    name: str
    ok: bool
    found: str
    advice: str = ""


def checks() -> tuple[Check, ...]:
    """
    Checks all requirements, even after a failure; runs CMake and the C compiler.

    Raises GtstubError if the current directory was deleted: CMake and many compilers fail in such a directory.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise GtstubError("The current directory was deleted: change to another one.") from None
    return (
        _python(),
        _cmake(),
        _compiler(),
        _own_part("runtime library", lambda: ctypes.CDLL(str(RUNTIME))._name),
        _own_part("extension module", lambda: str(importlib.import_module("gtstub._host").__file__)),
        _optional("gt4py", "gt4py", f"makes stubs for new programs: {INSTALL_GT4PY}.", problem_of_gt4py),
        _optional(
            "DaCe", "dace", f"compiles the programs of gt4py, which requires it: {INSTALL_GT4PY}.", problem_of_dace
        ),
        _optional("icon4py", "icon4py-common", f"runs the programs of icon4py: {how_to_install('icon4py')}."),
        _optional("numpy", "numpy", "holds fields on a CPU: 'pip install numpy'."),
        _cupy(),
    )


def _python() -> Check:
    found = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    ok = sys.implementation.name == "cpython" and sys.version_info >= (3, 12)
    return Check("Python", ok, found, "" if ok else "gtstub needs CPython 3.12 or newer.")


def _cmake() -> Check:
    cmake = find_cmake()
    if cmake is None:
        return Check("CMake", ok=False, found="not found", advice="Install it: 'pip install cmake'.")
    done = subprocess.run([cmake, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return Check("CMake", ok=False, found=f"'{cmake}' fails", advice="Install another: 'pip install cmake'.")
    origin = "of this Python environment" if Path(cmake).parent == Path(sysconfig.get_path("scripts")) else "from PATH"
    return Check("CMake", ok=True, found=f"{done.stdout.split()[2]}, {cmake}, {origin}")


def _compiler() -> Check:
    with tempfile.TemporaryDirectory(prefix="gtstub-") as directory:
        source = Path(directory) / "doctor_stub.c"
        source.write_text(SOURCE)
        try:
            toolchain = find(Path(directory))
            toolchain.start(source, source.with_suffix(".so")).wait()
        except ToolchainError as error:
            return Check("C compiler", ok=False, found="does not work", advice=str(error))
    return Check("C compiler", ok=True, found=f"{toolchain.name}, {' '.join(toolchain.compiler)}")


def _own_part(name: str, load: Callable[[], str]) -> Check:
    """A part of gtstub's installation; `load` loads it and returns its path."""
    try:
        return Check(name, ok=True, found=load())
    except (OSError, ImportError) as error:
        return Check(name, ok=False, found=str(error), advice=REINSTALL)


def _cupy() -> Check:
    """Finds cupy under any name: it has a distribution for each version of CUDA and ROCm, such as 'cupy-cuda12x'."""
    installed = sorted(
        f"{name} {distribution.version}"
        for distribution in metadata.distributions()
        if (name := distribution.metadata["Name"]) and name.lower().startswith("cupy")
    )
    advice = "" if installed else "Optional; holds fields on a GPU: 'pip install cupy-cuda12x', or that of your GPU."
    return Check("cupy", ok=True, found=", ".join(installed) or "not installed", advice=advice)


def _optional(name: str, distribution: str, purpose: str, problem_of: Callable[[], str] = str) -> Check:
    """A package that need not be installed; `problem_of` says what is wrong with one that is, or nothing."""
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return Check(name, ok=True, found="not installed", advice=f"Optional; {purpose}")
    problem = problem_of()
    return Check(name, ok=not problem, found=found, advice=problem)
