"""gtstub_install_program(): what it installs runs where nothing else is left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gtstub.install import RUNTIME
from tests.support.cmake_projects import ALONE, FROM_PACKAGE, cmake, install_and_move

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(model LANGUAGES C)
find_package(gtstub REQUIRED)
gtstub_add_program(scale COMMITTED
  SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json LIBRARY built/other_name.so)
add_executable(model host.c)
target_link_libraries(model PRIVATE scale)
target_compile_definitions(model PRIVATE ENTRY="")

gtstub_install_program(scale DESTINATION lib/scale)
set_target_properties(model PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/scale")
install(TARGETS model DESTINATION bin)
"""


def test_installed_program_runs_where_it_was_moved(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    moved = install_and_move(PROJECT, roots[ALONE], sources, tmp_path)

    program = moved / "lib" / "scale"
    assert {file.name for file in program.iterdir()} == {"scale_stub.so", "libscale.so", RUNTIME.name}
    done = subprocess.run([moved / "bin" / "model", program], cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "2.5 5 7.5\n"), done.stderr
    needed = subprocess.run(["ldd", program / "scale_stub.so"], capture_output=True, text=True, check=True).stdout
    assert f"{program / RUNTIME.name} " in needed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("scale", "gtstub_install_program(scale): DESTINATION needs a folder."),
        ("scale DESTINATION lib INTO lib", "gtstub_install_program(scale): there is no argument 'INTO;lib'."),
        ("none DESTINATION lib", "gtstub_install_program(none): 'none' is no target of gtstub_add_program()."),
        ("other DESTINATION lib", "gtstub_install_program(other): 'other' is no target of gtstub_add_program()."),
    ],
)
def test_refusals(arguments: str, message: str, roots: dict[str, Path], sources: Path) -> None:
    (sources / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub REQUIRED)\n"
        "gtstub_add_program(scale SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json)\n"
        f"add_library(other INTERFACE)\ngtstub_install_program({arguments})\n"
    )
    printed = cmake("-S", sources, "-B", sources / "build", f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}", fails=True)
    assert message in printed
