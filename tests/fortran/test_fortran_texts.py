"""Generated Fortran compiles without a warning, and so does the C that it calls, whatever the names in it are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gtstub.install import INCLUDE
from gtstub.stub.signature.model import Axis, Dimension, ProgramSignature, SdfgSignature
from tests.support import fortran_hosts, goldens, target
from tests.support.programs import need, needs
from tests.support.signatures import (
    SMALL_PROGRAM,
    SMALL_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    field,
    program,
    scalar,
    sdfg,
    symbol,
    with_static,
)
from tests.support.stubs import render_stub

pytestmark = needs("gfortran")

GTSTUB = [fortran_hosts.RUNTIME_SOURCES / "fortran" / f"{module}.f90" for module in fortran_hosts.MODULES]

# Words of Fortran, and what the generated entry calls its own things.
TRICKY = """
    a allocatable allocate args assignment block call character contains contiguous data dimension end entry
    error fill found function import in init integer intent interface intrinsic kind known len logical module
    nint none null only optional out parameter pointer procedure pure real result run s save select self size
    status stop subroutine sum target then type use value where
""".split()  # noqa: SIM905

LONG = "p" * 120


def _tricky(name: str) -> tuple[SdfgSignature, ProgramSignature]:
    """Each of the words is a field or a scalar, and the program is called `name`."""
    arrays = [name for i, name in enumerate(TRICKY) if i % 2 == 0]
    scalars = [name for i, name in enumerate(TRICKY) if i % 2 == 1]
    signature = program(name, **dict.fromkeys(arrays, field(K)), **dict.fromkeys(scalars, scalar("bool")))
    arguments = [array(name, Axis()) for name in arrays]
    return sdfg(*arguments, *(symbol(name, dtype="bool") for name in scalars), name=name), signature


SIGNATURES: dict[str, tuple[SdfgSignature, ProgramSignature]] = {
    "whole": (WHOLE_SDFG, WHOLE_PROGRAM),
    "small": (SMALL_SDFG, SMALL_PROGRAM),
    "empty": (sdfg(), program()),
    "scalars": (sdfg(symbol("n")), program(n=scalar("int32"))),
    "static": (sdfg(), with_static(program(n=scalar("int32")), n=7)),
    "tricky": _tricky("prog"),
    "long": (
        sdfg(array("x" * 63, *[Axis()] * 6, access="write"), name=LONG),
        program(LONG, **{"x" * 63: field(*[Dimension("D" * 50, "horizontal")] * 6)}),
    ),
}


def signatures_of(name: str) -> tuple[SdfgSignature, ProgramSignature]:
    return SIGNATURES[name] if name in SIGNATURES else goldens.signatures_of(name)


def compiles(*command: str | Path, folder: Path) -> None:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of gtstub, compiled."""
    folder = tmp_path_factory.mktemp("modules")
    compiles(*fortran_hosts.FORTRAN, *fortran_hosts.WARNINGS, "-c", *GTSTUB, folder=folder)
    return folder


@pytest.mark.parametrize("name", [*SIGNATURES, *goldens.REAL])
def test_module_compiles_without_a_warning(name: str, modules: Path, tmp_path: Path) -> None:
    text = render_stub(*signatures_of(name), fortran=True).module
    assert text is not None
    (tmp_path / "module.f90").write_text(text, encoding="utf-8")
    command = (*fortran_hosts.FORTRAN, *fortran_hosts.WARNINGS, "-fsyntax-only", "-I", modules)
    compiles(*command, "module.f90", folder=tmp_path)


@pytest.mark.parametrize("name", TRICKY)
def test_programs_may_be_called_as_fortran_calls_its_own(name: str, modules: Path, tmp_path: Path) -> None:
    text = render_stub(sdfg(name=name), program(name), fortran=True).module
    assert text is not None
    user = f"subroutine user(p)\nuse gtstub\nuse {name}_stub\ntype(gts_program) :: p\ncall {name}(p)\nend subroutine\n"
    (tmp_path / "module.f90").write_text(text + user, encoding="utf-8")
    command = (*fortran_hosts.FORTRAN, "-fsyntax-only", "-I", modules)
    compiles(*command, "module.f90", folder=tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", [*SIGNATURES, *goldens.REAL])
def test_entry_compiles_without_a_warning(name: str, compiler: str, tmp_path: Path) -> None:
    need(compiler)
    sources = render_stub(*signatures_of(name))
    stub = f"{signatures_of(name)[1].name}_stub"
    (tmp_path / f"{stub}.h").write_text(sources.header, encoding="utf-8")
    (tmp_path / f"{stub}.c").write_text(sources.source, encoding="utf-8")
    binding = subprocess.run(
        [fortran_hosts.FORTRAN[0], "-print-file-name=include/ISO_Fortran_binding.h"],
        capture_output=True,
        text=True,
        check=True,
    )
    shutil.copy(binding.stdout.strip(), tmp_path)
    warnings = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-O2")
    compiles(
        *(
            *target.compiler(compiler),
            "-std=c11",
            *warnings,
            "-DGTS_FORTRAN",
            "-c",
            "-I",
            INCLUDE,
            "-isystem",
            ".",
            f"{stub}.c",
        ),
        folder=tmp_path,
    )
