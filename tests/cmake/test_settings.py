"""What a project says of all its targets, or where it lies, does not change what gts_open() finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import scale_program as scale
from tests.support.c_hosts import works
from tests.support.cmake_projects import ALONE, FROM_PACKAGE, PROGRAM, Project, cmake
from tests.support.programs import need
from tests.support.stubs import write_stub


@pytest.mark.parametrize("generator", ["Unix Makefiles", "Ninja Multi-Config"])
def test_postfix_and_output_directories(generator: str, roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    if generator.startswith("Ninja"):
        need("ninja")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    project = Project(tmp_path, roots[ALONE], sources)
    project.configure(
        *("-G", generator, "-DHOW=COMMITTED", "-DCMAKE_BUILD_TYPE=Debug"),
        "-DCMAKE_DEBUG_POSTFIX=d",
        f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY_DEBUG={tmp_path}/all",
        f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={tmp_path}/all",
        "-DCMAKE_SHARED_LIBRARY_SUFFIX=.plugin",
    )
    project.build()
    host = "Debug/host_c" if generator.startswith("Ninja") else "host_c"
    assert project.run(host) == "2.5 5 7.5\n"


def test_language_is_not_read_from_a_path(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    project = Project(tmp_path / "my f90 models", roots[FROM_PACKAGE], sources)
    project.configure()
    project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"
    assert not list(project.build_folder.rglob("*.f90"))


@pytest.mark.parametrize("languages", [("gcc", "C", "CXX", "Fortran"), ("clang", "C")])
@pytest.mark.parametrize("how", ["", "STATIC"])
def test_interprocedural_optimisation(
    languages: tuple[str, ...], how: str, roots: dict[str, Path], sources: Path, tmp_path: Path
) -> None:
    compiler, *others = languages
    need(compiler, *(["gfortran", "g++"] if compiler == "gcc" else []))
    if not works((compiler, "-flto"), tmp_path):
        pytest.skip(f"{compiler} cannot optimise at link time here")
    project = Project(tmp_path, roots[FROM_PACKAGE], sources, *others)
    project.configure(
        *(f"-DHOW={how}", f"-DGTSTUB_EXECUTABLE={PROGRAM}", f"-DCMAKE_C_COMPILER={compiler}"),
        *("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"),
    )
    assert "warning" not in project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"
    if "Fortran" in others:
        assert project.run("host_cxx") == "2.5 5 7.5\n"
        assert project.run("host_fortran") == " 2.5 5.0 7.5\n"


EXPORTED = """
cmake_minimum_required(VERSION 3.20)
project(exported LANGUAGES C Fortran)
find_package(gtstub REQUIRED)
gtstub_add_program(scale ${HOW} LANGUAGES C Fortran
  SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json LIBRARY libscale.so)
install(TARGETS scale EXPORT programs DESTINATION lib INCLUDES DESTINATION include)
install(EXPORT programs DESTINATION lib/cmake/programs FILE programsConfig.cmake)
"""


@pytest.mark.parametrize(("how", "runtime"), [("", "gtstub::gtstub"), ("STATIC", "gtstub::gtstub_static")])
def test_stub_can_be_exported(how: str, runtime: str, roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    need("gfortran")
    (sources / "CMakeLists.txt").write_text(EXPORTED)
    build = tmp_path / "build"
    cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}", f"-DHOW={how}")
    cmake("--build", build)
    cmake("--install", build, "--prefix", tmp_path / "installed")
    config = (tmp_path / "installed" / "lib" / "cmake" / "programs" / "programsConfig.cmake").read_text()
    assert f'INTERFACE_LINK_LIBRARIES "{runtime}"' in config
    assert str(tmp_path) not in config
