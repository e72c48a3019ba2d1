"""Stubs for tests: from two signatures to texts and to a library."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.codegen.hosts.fortran import FORTRAN
from gtstub.stub.codegen.stub import make_stub
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support.compiled import compile_once


@dataclasses.dataclass(frozen=True)
class Texts:
    """The texts of a stub; `module` is empty if it was not asked for."""

    header: str
    source: str
    module: str = ""


def render_stub(sdfg: SdfgSignature, program: ProgramSignature, *, fortran: bool = False) -> Texts:
    stub = make_stub(sdfg, program, languages=[FORTRAN] if fortran else [])
    return Texts(stub.files[stub.header], stub.files[stub.source], stub.files.get(f"{stub.plan.name}_stub.f90", ""))


def write_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path) -> Path:
    """Writes header and source into `folder`; returns the path of the source."""
    folder.mkdir(parents=True, exist_ok=True)
    stub = make_stub(sdfg, program)
    for name, text in stub.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / stub.source


def build_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path, toolchain: Toolchain) -> Path:
    """Writes and compiles a stub as gtstub does; returns the path of its library."""
    source = write_stub(sdfg, program, folder)
    library = source.with_suffix(".so")
    texts = [file.read_text(encoding="utf-8") for file in (source, source.with_suffix(".h"))]
    compile_once((toolchain.digest, *texts), library, lambda: toolchain.start(source, library).wait())
    return library
