"""The doctor looks at real installations, whole ones and ones with something taken out."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

import gtstub
from gtstub._version import GT4PY_VERSIONS
from gtstub.entries.toolchain.answer import find_cmake
from gtstub.entries.toolchain.doctor import Check, checks
from tests.support.programs import need

NAMES = [
    "Python",
    "CMake",
    "C compiler",
    "C++ compiler",
    "Fortran compiler",
    "runtime library",
    "extension module",
    "gt4py",
    "DaCe",
    "icon4py",
    "numpy",
    "cupy",
    "MPI",
    "mpi4py",
    "matplotlib",
]

PRINT = """
import dataclasses, json, sys
from gtstub.entries.toolchain.doctor import checks
print(json.dumps([dataclasses.asdict(check) for check in checks()]))
assert not {"gt4py", "dace", "icon4py", "numpy"} & set(sys.modules)
"""


def run_checks(interpreter: str | Path, *path: Path) -> dict[str, Check]:
    done = subprocess.run(
        [interpreter, "-c", PRINT],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {check["name"]: Check(**check) for check in json.loads(done.stdout)}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the installed package, to take something out of it."""
    assert gtstub.__file__ is not None
    package = Path(gtstub.__file__).parent
    (information,) = package.parent.glob("gtstub-*.dist-info")
    for directory in (package, information):
        shutil.copytree(directory, tmp_path / "site" / directory.name)
    return tmp_path / "site"


def test_a_whole_installation_is_healthy() -> None:
    found = run_checks(sys.executable)
    assert list(found) == NAMES
    assert [check for check in found.values() if not check.ok] == []
    assert found["C compiler"].found.split()[0] in {"GNU", "Clang", "AppleClang", "IntelLLVM", "NVHPC", "Cray"}
    assert metadata.version("numpy") == found["numpy"].found
    assert found["CMake"].found.endswith(f"{Path(sys.executable).with_name('cmake')}, of this Python environment")


def test_missing_compiler_is_found_and_the_rest_still_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    found = {check.name: check for check in checks()}
    assert list(found) == NAMES
    assert [check.name for check in found.values() if not check.ok] == ["C compiler"]
    assert "'no-such-compiler'" in found["C compiler"].advice
    assert "apt-get install gcc" in found["C compiler"].advice


@pytest.mark.parametrize("named_by", ["CXX", "DACE_compiler_cpu_executable"])
def test_a_cxx_compiler_that_does_not_exist_is_an_error(named_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if named_by == "CXX":
        monkeypatch.setenv("CXX", "/no/compiler")
        done = checks()
    else:
        done = checks("/no/compiler", named_by)
    (found,) = (check for check in done if not check.ok)
    assert (found.name, found.found) == ("C++ compiler", "not found")
    assert found.advice == (
        f"The C++ compiler '/no/compiler', which {named_by} names, was not found: install one ('apt-get install g++',"
        " or 'conda install cxx-compiler') or name it in CXX."
    )


def test_a_cxx_compiler_that_writes_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "true")
    (found,) = (check for check in checks() if not check.ok)
    assert (found.name, found.found) == ("C++ compiler", "does not work")


def test_programs_that_are_optional_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("gcc", "g++")
    monkeypatch.delenv("FC", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cc", "c++", "as", "ld", "make"):
        (folder / name).symlink_to(shutil.which(name) or name)
    (folder / "mpiexec").write_text("#!/bin/sh\necho an MPI 1.0\necho more\n")
    (folder / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = {check.name: check for check in checks()}
    assert [check for check in found.values() if not check.ok] == []
    assert found["Fortran compiler"].found == "not found"
    assert found["Fortran compiler"].advice == "Optional; compiles Fortran hosts: 'apt-get install gfortran'."
    assert found["MPI"] == Check("MPI", ok=True, found=f"an MPI 1.0, {folder / 'mpiexec'}")
    (folder / "mpiexec").unlink()
    (mpi,) = (check for check in checks() if check.name == "MPI")
    assert (mpi.ok, mpi.found) == (True, "not found")
    assert "apt-get install openmpi-bin" in mpi.advice


def test_missing_runtime_is_found(copy: Path) -> None:
    shutil.rmtree(copy / "gtstub" / "lib")
    found = run_checks(sys.executable, copy)
    assert not found["runtime library"].ok
    assert not found["extension module"].ok
    assert not found["C compiler"].ok
    assert "pip install --force-reinstall" in found["runtime library"].advice


def test_missing_extension_module_is_found(copy: Path) -> None:
    for library in (copy / "gtstub").glob("_host*"):
        library.unlink()
    found = run_checks(sys.executable, copy)
    assert [check.name for check in found.values() if not check.ok] == ["extension module"]
    assert "pip install --force-reinstall" in found["extension module"].advice


def test_missing_cmake_is_found(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = run_checks(tmp_path / "venv" / "bin" / "python", copy)
    assert not found["CMake"].ok
    assert found["CMake"].advice == "Install it: 'pip install cmake'."


def test_cmake_of_path_is_used_where_the_environment_has_none(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (tmp_path / "cmake").symlink_to(find_cmake() or "cmake")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = run_checks(tmp_path / "venv" / "bin" / "python", copy)
    assert found["CMake"].ok
    assert found["CMake"].found.endswith(f"{tmp_path / 'cmake'}, from PATH")


def test_what_is_optional_may_be_missing(copy: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    found = run_checks(tmp_path / "venv" / "bin" / "python", copy)
    for name in ("gt4py", "DaCe", "icon4py", "numpy", "cupy", "mpi4py", "matplotlib"):
        assert dataclasses.replace(found[name], advice="") == Check(name, ok=True, found="not installed")
        assert found[name].advice.startswith("Optional; ")
        assert "pip install" in found[name].advice


def test_dace_that_breaks_gt4py_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "dace-2.0.0b1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: dace\nVersion: 2.0.0b1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = {check.name: check for check in checks()}
    assert [check.name for check in found.values() if not check.ok] == ["DaCe"]
    assert found["DaCe"].found == "2.0.0b1"
    assert found["DaCe"].advice == (
        "DaCe 2.0.0b1 breaks gt4py: 'ConditionalBlock' object has no attribute 'all_states'. Install another:"
        " 'pip install dace==2.0.0a10'."
    )


def test_gt4py_of_another_version_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "gt4py-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: gt4py\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(tmp_path)
    (check,) = (check for check in checks() if check.name == "gt4py")
    assert not check.ok
    assert check.found == "9.9"
    assert (
        check.advice == "gtstub supports gt4py 1.2.1, 1.2.2, 1.2.3, but 9.9 is installed: 'pip install gt4py==1.2.3'."
    )


def test_the_extra_takes_the_supported_versions_of_gt4py() -> None:
    (requirement,) = (each for each in metadata.requires("gtstub") or () if each.startswith("gt4py"))
    assert set(requirement.partition(";")[0].removeprefix("gt4py").strip().split(",")) == {
        f">={GT4PY_VERSIONS[0]}",
        f"<={GT4PY_VERSIONS[-1]}",
    }
