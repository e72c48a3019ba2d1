"""A cache entry whose SDFG library does nothing, so that only the call is measured."""

from __future__ import annotations

import shutil
from pathlib import Path

from gtstub.cache import store
from gtstub.codegen.c import render
from gtstub.plan.planner import make_plan
from gtstub.signature import documents
from gtstub.signature.model import ProgramSignature, SdfgSignature
from gtstub.toolchain import compiler
from tests.support.sdfg_libraries import build_null_library


def build_entry(
    sdfg: SdfgSignature, program: ProgramSignature, folder: Path, name: str = "entry"
) -> store.StubArtifact:
    """Builds the entry `folder`/`name`, anew."""
    shutil.rmtree(folder / name, ignore_errors=True)
    with store.Cache(folder).private_directory(name) as private:
        build_null_library(sdfg, private)
        stub = build_stub(sdfg, program, private, compiler.find(folder))
        manifest = {"name": program.name, "stub": stub.name, "library": sdfg.library, "workspaces": {}}
        return store.Cache(folder).publish(private, name, manifest)


def build_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path, compiler: compiler.Toolchain) -> Path:
    """From two signatures to a stub library."""
    texts = render(
        make_plan(sdfg, program),
        program_digest=documents.digest(documents.program_to_json(program)),
        sdfg_digest=documents.digest(documents.sdfg_to_json(sdfg)),
    )
    source = folder / f"{program.name}_stub.c"
    source.write_text(texts.source, encoding="utf-8")
    source.with_suffix(".h").write_text(texts.header, encoding="utf-8")
    (folder / "program.json").write_text(documents.program_to_json(program), encoding="utf-8")
    (folder / "sdfg.json").write_text(documents.sdfg_to_json(sdfg), encoding="utf-8")
    library = source.with_suffix(".so")
    compiler.start(source, library).wait()
    return library
