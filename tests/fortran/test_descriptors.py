"""
Descriptors of several compilers, made by hand: a stub reads those for which it was compiled, and refuses others.
No Fortran compiler takes part.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gtstub.install import INCLUDE, RUNTIME
from tests.support.programs import need, needs
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import write_stub

HERE = Path(__file__).parent
LAYOUTS = HERE / "layouts"

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1", "-fPIC", "-I", str(INCLUDE))
LINK = (str(RUNTIME), f"-Wl,-rpath,{RUNTIME.parent}", "-ldl")

REFUSAL = (
    "1 Argument 'x' of program 'prog' has the descriptor of another Fortran compiler: compile the stub with the "
    "ISO_Fortran_binding.h of the host's compiler."
)


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def include(layout: str) -> tuple[str, ...]:
    return ("-I", str(LAYOUTS), f"-DLAYOUT={layout}")


@pytest.fixture(scope="module", params=["GFORTRAN", "FLANG_19", "FLANG_20"])
def stub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a stub, and the layout for which it was compiled."""
    need("gcc")
    folder, layout = tmp_path_factory.mktemp(request.param), str(request.param)
    source = write_stub(SMALL_SDFG, SMALL_PROGRAM, folder)
    flags = (*FLAGS, *include(layout), "-DGTS_FORTRAN", "-fvisibility=hidden", "-shared")
    run("gcc", *flags, source, *LINK, "-o", "prog_stub.so", folder=folder)
    build_recording_library(SMALL_SDFG, folder, ["gcc"])
    return folder, layout


@pytest.mark.parametrize("layout", ["GFORTRAN", "FLANG_19", "FLANG_20", "EXTENT_FIRST"])
def test_a_stub_reads_the_descriptors_that_it_was_compiled_for(stub: tuple[Path, str], layout: str) -> None:
    folder, compiled_for = stub
    flags = (*FLAGS, *include(layout))
    run("gcc", *flags, HERE / "descriptors.c", "./prog_stub.so", "./libprog.so", *LINK, "-o", layout, folder=folder)
    called, bound, count = run(f"./{layout}", folder=folder).splitlines()
    if layout == compiled_for:
        assert (called, bound, count) == ("0 ", "0 ", "2")  # __dace_init, and the program
    else:
        assert (called, bound, count) == (REFUSAL, REFUSAL, "1")  # __dace_init, when it was loaded


@needs("gcc")
@pytest.mark.parametrize(
    ("compiler", "layout", "header"),
    [
        ("gfortran", "GFORTRAN", "include/ISO_Fortran_binding.h"),
    ],
)
def test_layouts_are_those_of_the_compilers(compiler: str, layout: str, header: str, tmp_path: Path) -> None:
    need(compiler)
    found = Path(run(compiler, f"-print-file-name={header}", folder=tmp_path).strip())
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / found.name).write_bytes(found.read_bytes())
    printed = []
    for flags in (include(layout), ("-I", str(tmp_path / "real"))):
        run("gcc", *flags, LAYOUTS / "members.c", "-o", "members", folder=tmp_path)
        printed.append(run("./members", folder=tmp_path))
    assert printed[0] == printed[1]
