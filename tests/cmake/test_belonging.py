"""What gtstub_add_program() compares when a project is configured: committed stub, signatures and SDFG library."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from gtstub.stub.signature.documents import sdfg_to_json
from tests.support import scale_program as scale
from tests.support.cmake_projects import ALONE, PROGRAM, ROOT, Project, cmake
from tests.support.programs import need
from tests.support.signatures import array, sdfg, symbol
from tests.support.stubs import render_stub, write_stub

COMMITTED = ROOT / "examples" / "icon4py"

# The same functions, other slots: the sizes are compiled in.
OTHER_SDFG = sdfg(array("out", access="write"), array("x"), symbol("factor", dtype="float64"), name="scale")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def project(roots: dict[str, Path], sources: Path, tmp_path: Path) -> Project:
    """With a committed stub that can be configured."""
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    project = Project(tmp_path, roots[ALONE], sources)
    project.configure("-DHOW=COMMITTED")
    return project


@pytest.mark.parametrize(
    ("argument", "kind", "name"),
    [
        ("SDFG_SIGNATURE", "SDFG signature", "scale.sdfg.json"),
        ("PROGRAM_SIGNATURE", "program signature", "scale.program.json"),
    ],
)
def test_committed_stub_of_another_signature(
    argument: str, kind: str, name: str, project: Project, sources: Path
) -> None:
    signature = sources / name
    before = sha256(signature)
    signature.write_bytes(signature.read_bytes().replace(b"\n", b"\r\n"))
    assert (
        f"gtstub_add_program(scale): the committed source '{sources}/scale_stub.h' was generated from another {kind}:"
        f" from one with SHA-256 {before}, and {argument} '{signature}' has {sha256(signature)}. Name the signature"
        " that belongs to the source, or generate the source again with 'gtstub generate'. Another formatting, as line"
        " ends that git changed (core.autocrlf), makes another file, too."
    ) in project.build(fails=True)  # which configures again
    signature.write_bytes(signature.read_bytes().replace(b"\r\n", b"\n"))
    project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"


@pytest.mark.parametrize("suffix", ["h", "c", "f90"])
def test_each_committed_file_is_looked_at(suffix: str, roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    need("gfortran")
    texts = render_stub(scale.SDFG, scale.PROGRAM, fortran=True)
    files = {"h": texts.header, "c": texts.source, "f90": texts.module}
    files[suffix] = re.sub(r"(SDFG signature +sha256) \w", r"\1 x", files[suffix])
    for name, text in files.items():
        (sources / f"scale_stub.{name}").write_text(text)
    printed = Project(tmp_path, roots[ALONE], sources, "C", "Fortran").configure("-DHOW=COMMITTED", fails=True)
    assert (
        f"the committed source '{sources}/scale_stub.{suffix}' does not say which SDFG signature it was generated from:"
        " make it with 'gtstub generate'."
    ) in printed


def test_signature_of_another_program(roots: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub REQUIRED)\n"
        "gtstub_add_program(p COMMITTED\n"
        f"  SDFG_SIGNATURE {COMMITTED}/scale_k/sdfg.json\n"
        f"  PROGRAM_SIGNATURE {COMMITTED}/copy_field/program.json)\n"
    )
    printed = cmake("-S", tmp_path, "-B", tmp_path / "build", f"-Dgtstub_ROOT={roots[ALONE]}", fails=True)
    assert "was generated from another SDFG signature: from one with SHA-256" in printed


@pytest.mark.parametrize("how", ["", "COMMITTED"])
def test_library_of_another_signature(how: str, project: Project, sources: Path) -> None:
    entry = sources / "entry"
    entry.mkdir()
    shutil.copy(sources / "libscale.so", entry)
    built_from, signature = entry / "sdfg.json", sources / "scale.sdfg.json"
    built_from.write_text(sdfg_to_json(OTHER_SDFG))
    options = (f"-DLIBRARY={entry}/libscale.so", f"-DHOW={how}", f"-DGTSTUB_EXECUTABLE={PROGRAM}")
    assert (
        f"gtstub_add_program(scale): LIBRARY '{entry}/libscale.so' was built from another SDFG: 'sdfg.json' beside it"
        f" has SHA-256 {sha256(built_from)}, and SDFG_SIGNATURE '{signature}' has {sha256(signature)}. Name the library"
        " that was built from this signature, or make the stub of that 'sdfg.json' and the 'program.json' beside it."
    ) in project.configure(*options, fails=True)
    shutil.copy(signature, built_from)
    project.configure(*options)
    project.build()
    assert project.run("host_c") == "2.5 5 7.5\n"
    built_from.write_text(sdfg_to_json(OTHER_SDFG))
    assert "was built from another SDFG" in project.build(fails=True)
