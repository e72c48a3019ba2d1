"""Stubs for tests: from two signatures to texts and to a library."""

from __future__ import annotations

from pathlib import Path

from gtstub.codegen.c import Sources, render
from gtstub.plan.planner import make_plan
from gtstub.signature.documents import digest, program_to_json, sdfg_to_json
from gtstub.signature.model import ProgramSignature, SdfgSignature
from gtstub.toolchain.compiler import Toolchain


def render_stub(sdfg: SdfgSignature, program: ProgramSignature, *, fortran: bool = False) -> Sources:
    return render(
        make_plan(sdfg, program),
        program_digest=digest(program_to_json(program)),
        sdfg_digest=digest(sdfg_to_json(sdfg)),
        fortran=fortran,
    )


def write_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path) -> Path:
    """Writes header and source into `folder`; returns the path of the source."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = render_stub(sdfg, program)
    (folder / f"{program.name}_stub.h").write_text(sources.header, encoding="utf-8")
    source = folder / f"{program.name}_stub.c"
    source.write_text(sources.source, encoding="utf-8")
    return source


def build_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path, toolchain: Toolchain) -> Path:
    """Writes and compiles a stub as gtstub does; returns the path of its library."""
    source = write_stub(sdfg, program, folder)
    library = source.with_suffix(".so")
    toolchain.start(source, library).wait()
    return library
