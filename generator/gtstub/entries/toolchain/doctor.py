"""The requirements of gtstub on this machine: which are met, and how to meet the others. For 'gtstub doctor'."""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from gtstub.entries.toolchain.answer import COMPILERS, candidates, find_cmake
from gtstub.entries.toolchain.compiler import Toolchain, find
from gtstub.entries.toolchain.versions import INSTALL_GT4PY, problem_of_dace, problem_of_gt4py
from gtstub.errors import GtstubError, ToolchainError
from gtstub.install import RUNTIME, how_to_install

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


CXX_SOURCE = """
#include <vector>
extern "C" unsigned long gtstub_doctor() { return std::vector<int>(1).size(); }
"""

HOW_TO_GET_CXX = "install one ('apt-get install g++', or 'conda install cxx-compiler') or name it in CXX"

LONGEST = 10.0
"""Seconds that a program may take to say its version."""


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


def checks(cxx: str = "", named_by: str = "CXX") -> tuple[Check, ...]:
    """
    Checks all requirements, even after a failure; runs CMake and the compilers. `cxx` is the C++ compiler that DaCe is
    told to use, and `named_by` who tells it; by default the one in CXX, or else CMake's choice.

    Raises GtstubError if the current directory was deleted: CMake and many compilers fail in such a directory.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise GtstubError("The current directory was deleted: change to another one.") from None
    return (
        _python(),
        _cmake(),
        *_compilers(cxx, named_by),
        _fortran(),
        _own_part("runtime library", lambda: ctypes.CDLL(str(RUNTIME))._name),
        _own_part("extension module", lambda: str(importlib.import_module("gtstub._host").__file__)),
        _optional("gt4py", "gt4py", f"makes stubs for new programs: {INSTALL_GT4PY}.", problem_of_gt4py),
        _optional(
            "DaCe", "dace", f"compiles the programs of gt4py, which requires it: {INSTALL_GT4PY}.", problem_of_dace
        ),
        _optional("icon4py", "icon4py-common", f"runs the programs of icon4py: {how_to_install('icon4py')}."),
        _optional("numpy", "numpy", "holds fields on a CPU: 'pip install numpy'."),
        _cupy(),
        _mpi(),
        _optional("mpi4py", "mpi4py", "lets ranks exchange entries: 'pip install mpi4py'."),
        _optional("matplotlib", "matplotlib", "draws plots: 'pip install matplotlib'."),
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


def _compilers(cxx: str, named_by: str) -> tuple[Check, Check]:
    """The C compiler, which compiles a stub, and the C++ compiler, which compiles what needs its headers."""
    with tempfile.TemporaryDirectory(prefix="gtstub-") as directory:
        source = Path(directory) / "doctor_stub.c"
        source.write_text(SOURCE)
        toolchain = None
        try:
            toolchain = find(Path(directory), cxx=cxx)
            toolchain.start(source, source.with_suffix(".so")).wait()
        except ToolchainError as error:
            check = Check("C compiler", ok=False, found="does not work", advice=str(error))
        else:
            check = Check("C compiler", ok=True, found=f"{toolchain.name}, {' '.join(toolchain.compiler)}")
        return check, _cxx(toolchain, [cxx] if cxx else candidates("CXX"), named_by, Path(directory))


def _cxx(toolchain: Toolchain | None, names: Sequence[str], named_by: str, directory: Path) -> Check:
    """The C++ compiler, one of these names. DaCe needs it, and gtstub needs it for DaCe alone."""
    path = next(filter(None, map(shutil.which, names)), None)
    if toolchain is None and path is not None:
        return Check("C++ compiler", ok=True, found=f"{path}, not tried without a C compiler")
    if toolchain is not None and path is not None and toolchain.cxx and _compiles(toolchain.cxx, directory):
        return Check("C++ compiler", ok=True, found=f"{toolchain.cxx_name}, {' '.join(toolchain.cxx)}")
    is_named = names is not COMPILERS["CXX"]
    what = f"The C++ compiler '{names[0]}', which {named_by} names," if is_named else "A C++ compiler"
    problem = "was not found" if path is None else "does not work"
    return Check(
        "C++ compiler",
        ok=not is_named and not _is_installed("dace"),
        found=problem.removeprefix("was "),
        advice=f"{what} {problem}: {HOW_TO_GET_CXX}.",
    )


def _compiles(cxx: Sequence[str], directory: Path) -> bool:
    source = directory / "doctor.cpp"
    source.write_text(CXX_SOURCE)
    library = source.with_suffix(".so")
    command = [*cxx, "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return library.exists()


def _fortran() -> Check:
    advice = "Optional; compiles Fortran hosts: 'apt-get install gfortran'."
    return _program("Fortran compiler", os.environ.get("FC", "").split()[:1] or ["gfortran"], advice)


def _mpi() -> Check:
    advice = "Optional; runs the ranks of a parallel run: 'apt-get install openmpi-bin libopenmpi-dev'."
    return _program("MPI", ["mpirun", "mpiexec"], advice)


def _program(name: str, programs: Sequence[str], advice: str) -> Check:
    """A program that need not be there, with the first line of what it says about its version."""
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None:
        return Check(name, ok=True, found="not found", advice=advice)
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except (OSError, subprocess.TimeoutExpired):
        return Check(name, ok=True, found=f"'{path} --version' fails", advice=advice)
    version = next(iter(done.stdout.strip().splitlines()), "")
    return Check(name, ok=True, found=f"{version}, {path}" if version else path)


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


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
