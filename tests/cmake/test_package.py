"""
The CMake package and the pkg-config file, as another project uses them: from the Python package, and from a runtime
that was installed alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from gtstub.cli import app
from gtstub.install import RUNTIME
from tests.support import scale_program as scale
from tests.support.cmake_projects import (
    ALONE,
    ENVIRONMENT,
    FROM_PACKAGE,
    HOSTS,
    PROGRAM,
    ROOT,
    Project,
    cmake,
)
from tests.support.programs import need
from tests.support.stubs import render_stub, write_stub


def test_generated(root: Path, sources: Path, tmp_path: Path) -> None:
    project = Project(tmp_path, root, sources, "C", "CXX")
    project.configure(f"-DGTSTUB_EXECUTABLE={PROGRAM}")
    project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"
    assert project.run("host_c", str(project.build_folder / "scale" / "scale_stub.so")) == "2.5 5 7.5\n"
    assert project.run("host_cxx") == "2.5 5 7.5\n"


def test_committed_needs_no_program(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    project = Project(tmp_path, roots[ALONE], sources, "C", "CXX")
    project.configure("-DHOW=COMMITTED")
    project.build()
    assert project.run("host_c") == project.run("host_cxx") == "2.5 5 7.5\n"
    assert not list((project.build_folder / "scale").glob("*.[ch]"))


@pytest.mark.parametrize("how", ["", "COMMITTED"])
def test_fortran(how: str, root: Path, sources: Path, tmp_path: Path) -> None:
    need("gfortran")
    texts = render_stub(scale.SDFG, scale.PROGRAM, fortran=True)
    for suffix, text in {".h": texts.header, ".c": texts.source, ".f90": texts.module}.items():
        (sources / f"scale_stub{suffix}").write_text(text or "")
    project = Project(tmp_path, root, sources, "C", "Fortran")
    project.configure(f"-DHOW={how}", f"-DGTSTUB_EXECUTABLE={PROGRAM}")
    project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"
    assert project.run("host_fortran") == " 2.5 5.0 7.5\n"
    modules = {file.name for file in project.build_folder.glob("**/*.mod")}
    assert modules == {"gtstub.mod", "gtstub_errors.mod", "gtstub_granules.mod", "gtstub_steps.mod", "scale_stub.mod"}


TWO_NAMES = """
cmake_minimum_required(VERSION 3.20)
project(two LANGUAGES C)
find_package(gtstub REQUIRED)
foreach(name IN ITEMS first second)
  gtstub_add_program(${name} NAME ${name} LIBRARY libscale.so
    SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json)
endforeach()
gtstub_add_program(plain LIBRARY libscale.so SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json)
add_executable(host host.c)
target_link_libraries(host PRIVATE first second)
"""

CALL_BOTH = """
#include <stdio.h>
#include "first_stub.h"
#include "second_stub.h"

int main(int argc, char **argv)
{
    double value = 1.0;
    const gts_array x = {
        .data = &value, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {1}, .strides = {1}};
    for (int i = 1; i < argc; ++i) {
        gts_program *first, *second;
        if (gts_open(argv[i], &first) != 0 || gts_open(argv[i], &second) != 0)
            return 1;
        if (first_call(first, &(struct first_args){.x = x, .factor = 2.0, .out = x}) != 0 ||
            second_call(second, &(struct second_args){.x = x, .factor = 3.0, .out = x}) != 0)
            return 2;
        gts_close(&first);
        gts_close(&second);
    }
    printf("%g\\n", value);
    return 0;
}
"""


def test_stubs_with_names_of_their_own(roots: dict[str, Path], sources: Path) -> None:
    (sources / "CMakeLists.txt").write_text(TWO_NAMES)
    (sources / "host.c").write_text(CALL_BOTH)
    build = sources / "build"
    cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}")
    cmake("--build", build)
    done = subprocess.run(
        [build / "host", build / "first", build / "second", build / "plain"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "216\n")


def test_compilers_of_two_families(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    """The C compiler clang has no ISO_Fortran_binding.h, and gfortran says where its own is."""
    need("gfortran", "clang")
    texts = render_stub(scale.SDFG, scale.PROGRAM, fortran=True)
    for suffix, text in {".h": texts.header, ".c": texts.source, ".f90": texts.module}.items():
        (sources / f"scale_stub{suffix}").write_text(text or "")
    project = Project(tmp_path, roots[ALONE], sources, "C", "Fortran")
    project.configure("-DCMAKE_C_COMPILER=clang", "-DCMAKE_Fortran_COMPILER=gfortran", "-DHOW=COMMITTED")
    project.build()
    assert project.run("host_fortran") == " 2.5 5.0 7.5\n"


def test_headers_of_another_fortran_compiler(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    need("gfortran", "clang")
    project = Project(tmp_path, roots[ALONE], sources, "C", "Fortran")
    options = ("-DCMAKE_C_COMPILER=clang", "-DHOW=COMMITTED")
    printed = project.configure(*options, "-Dgtstub_BINDING_DIR=", fails=True)
    assert "does not find ISO_Fortran_binding.h, which belongs to the Fortran compiler" in printed
    assert "name compilers of one family in CC and FC, as gcc and gfortran, or the folder of the header in" in printed
    shutil.rmtree(project.build_folder)
    of_flang = (f"-Dgtstub_BINDING_DIR={ROOT}/tests/fortran/layouts", "-DCMAKE_C_FLAGS=-DLAYOUT=FLANG_19")
    printed = project.configure(*options, *of_flang, fails=True)
    assert re.search(r"reads arrays of the Fortran compiler '\S*' wrongly, with the ISO_Fortran_binding.h", printed)


def test_a_gfortran_that_is_too_old(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    need("gfortran")
    project = Project(tmp_path, roots[ALONE], sources, "C", "Fortran")
    (older := tmp_path / "older.cmake").write_text("set(CMAKE_Fortran_COMPILER_VERSION 11.4.0)\n")
    printed = project.configure("-DHOW=COMMITTED", f"-DCMAKE_PROJECT_INCLUDE={older}", fails=True)
    assert "is gfortran 11.4.0, which cannot compile the module of a stub: gfortran 12 and later can." in printed


def test_the_program_of_the_package_is_found(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    project = Project(tmp_path, roots[FROM_PACKAGE], sources)
    project.configure()
    cache = (project.build_folder / "CMakeCache.txt").read_text()
    (found,) = re.findall(r"^GTSTUB_EXECUTABLE:FILEPATH=(.*)$", cache, re.MULTILINE)
    assert Path(found).resolve() == Path(PROGRAM).resolve()


def test_what_changes_is_made_anew(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    project = Project(tmp_path, roots[FROM_PACKAGE], sources)
    project.configure()
    project.build()
    header = project.build_folder / "scale" / "scale_stub.h"
    before = header.read_text()
    assert "Generating" not in project.build()

    scale.build_library(sources, times=2)
    project.build()
    assert project.run("host_c") == "5 10 15\n"

    signature = sources / "scale.program.json"
    signature.write_text(signature.read_text().replace('"K"', '"Level"'))
    project.build()
    assert "[K (stride 1)]" in before
    assert "[Level (stride 1)]" in header.read_text()
    assert project.run("host_c") == "5 10 15\n"


def test_pkg_config(root: Path, sources: Path, tmp_path: Path) -> None:
    need("pkg-config")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    shutil.copy(HOSTS / "host.c", sources)
    commands = """
        set -e
        flags="$(pkg-config --cflags --libs gtstub) -Wl,-rpath,$(pkg-config --variable=libdir gtstub)"
        cc -std=c11 -O2 -shared -fPIC scale_stub.c $flags -o scale_stub.so
        cc -std=c11 -O2 -DENTRY='"."' host.c -L. -l:scale_stub.so $flags -Wl,-rpath,'$ORIGIN' -o host
        ./host
    """
    environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": str(root / "lib" / "pkgconfig")}
    done = subprocess.run(
        ["sh", "-c", commands], cwd=sources, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2.5 5 7.5\n"), done.stderr


def test_config_says_where_the_packages_are() -> None:
    for command, file in (("cmake", "gtstubConfig.cmake"), ("pkgconfig", "gtstub.pc")):
        printed = CliRunner().invoke(app.main, ["config", command]).stdout
        assert (Path(printed.rstrip("\n")) / file).is_file(), printed


def test_directory_that_config_says_is_enough(sources: Path, tmp_path: Path) -> None:
    printed = CliRunner().invoke(app.main, ["config", "cmake"]).stdout
    Project(tmp_path, Path(printed.rstrip("\n")), sources).configure()


def test_versions(roots: dict[str, Path], tmp_path: Path) -> None:
    text = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub {} REQUIRED)\n"
    for wanted, fails in (("0.1", False), ("99.0", True)):
        (tmp_path / "CMakeLists.txt").write_text(text.format(wanted))
        cmake("-S", tmp_path, "-B", tmp_path / wanted, f"-Dgtstub_ROOT={roots[ALONE]}", fails=fails)


def test_library_has_the_number_of_the_interface(roots: dict[str, Path]) -> None:
    assert [file.name for file in (roots[ALONE] / "lib").glob("libgtstub.so*")] == [RUNTIME.name]


@pytest.mark.parametrize(("preset", "library"), [("release", None), ("asan", "libasan"), ("tsan", "libtsan")])
def test_presets_of_the_runtime(preset: str, library: str | None, tmp_path: Path) -> None:
    cmake("-S", ROOT, "--preset", preset, "-B", tmp_path, "-DCMAKE_C_COMPILER=gcc")
    cmake("--build", tmp_path)
    needed = subprocess.run(["ldd", tmp_path / RUNTIME.name], capture_output=True, text=True, check=True).stdout
    assert [name for name in ("libasan", "libtsan") if name in needed] == [name for name in (library,) if name]


# --- Refusals ---------------------------------------------------------------------------------------------------------

NEEDS = "needs a file, unless ENTRY has the name of a program."
GIVEN = {"SDFG_SIGNATURE": "scale.sdfg.json", "PROGRAM_SIGNATURE": "scale.program.json"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"SDFG_SIGNATURE": None}, f"gtstub_add_program(p): SDFG_SIGNATURE {NEEDS}"),
        ({"PROGRAM_SIGNATURE": ""}, f"gtstub_add_program(p): PROGRAM_SIGNATURE {NEEDS}"),
        ({"SDFG_SIGNATURE": "none.json"}, "gtstub_add_program(p): SDFG_SIGNATURE '{}/none.json' does not exist."),
        ({"LIBRARY": "libnone.so"}, "gtstub_add_program(p): LIBRARY '{}/libnone.so' does not exist."),
        ({"LIBRARY": ""}, f"gtstub_add_program(p): LIBRARY {NEEDS}"),
        (
            {"PROGRAM_SIGNATURE": "library.c"},
            "gtstub_add_program(p): PROGRAM_SIGNATURE '{}/library.c' is no program signature",
        ),
        ({"LANGUAGES": "C Rust"}, "gtstub_add_program(p): there are stubs for C and Fortran, not for 'Rust'."),
        ({"LANGUAGES": "Fortran"}, "gtstub_add_program(p): the project needs the language Fortran:"),
        ({"COMITTED": ""}, "gtstub_add_program(p): there is no argument 'COMITTED'."),
        (
            {"COMMITTED": ""},
            "gtstub_add_program(p): the committed source '{}/scale_stub.h' does not exist:"
            " make it with 'gtstub generate', or leave COMMITTED out.",
        ),
        (
            {},
            "gtstub_add_program(p): the program 'gtstub', which generates the stub, was not found: put the 'bin' of"
            " its Python environment on PATH, name it in GTSTUB_EXECUTABLE, or say COMMITTED and take sources that are"
            " there.",
        ),
    ],
)
def test_refusals(arguments: dict[str, str | None], message: str, roots: dict[str, Path], sources: Path) -> None:
    given = {name: value for name, value in {**GIVEN, **arguments}.items() if value is not None}
    call = " ".join(f"{name} {value}" for name, value in given.items())
    text = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub REQUIRED)\n"
    (sources / "CMakeLists.txt").write_text(f"{text}gtstub_add_program(p {call})\n")
    printed = cmake("-S", sources, "-B", sources / "build", f"-Dgtstub_ROOT={roots[ALONE]}", fails=True)
    assert message.format(sources) in printed
