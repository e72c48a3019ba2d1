"""A cache entry whose SDFG library does nothing, so that only the call is measured."""

from __future__ import annotations

import shutil
from pathlib import Path

from gtstub.entries.cache import store
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.toolchain import compiler
from gtstub.stub.signature import documents
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support.sdfg_libraries import build_null_library
from tests.support.stubs import write_stub


def build_entry(sdfg: SdfgSignature, program: ProgramSignature, folder: Path, name: str = "entry") -> Entry:
    """Builds the entry `folder`/`name`, anew."""
    shutil.rmtree(folder / name, ignore_errors=True)
    with store.Cache(folder).private_directory(name) as private:
        build_null_library(sdfg, private)
        stub = build_stub(sdfg, program, private, compiler.find(folder))
        manifest = Manifest(program.name, stub.name, sdfg.library)
        return store.Cache(folder).publish(private, name, manifest)


def build_stub(sdfg: SdfgSignature, program: ProgramSignature, folder: Path, compiler: compiler.Toolchain) -> Path:
    """From two signatures to a stub library."""
    source = write_stub(sdfg, program, folder)
    (folder / "program.json").write_text(documents.program_to_json(program), encoding="utf-8")
    (folder / "sdfg.json").write_text(documents.sdfg_to_json(sdfg), encoding="utf-8")
    library = source.with_suffix(".so")
    compiler.start(source, library).wait()
    return library
