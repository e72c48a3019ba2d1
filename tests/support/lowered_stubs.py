"""Stubs of lowered programs, bound to libraries that record what they receive instead of to what DaCe would build."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import dace

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.gt4py.program_signature import program_signature
from tests.support.gt4py_programs import Lowering
from tests.support.sdfg_libraries import Recorder, build_recording_library
from tests.support.stubs import write_stub


def bind_to_recorder(lowering: Lowering, folder: Path, toolchain: Toolchain) -> tuple[_host.Program, Recorder]:
    """The program of a lowering, and what reads back the argument lists that its SDFG would have been called with."""
    raw = cast(Mapping[str, Any], lowering.source.source_code)
    signature = sdfg_signature(dace.SDFG.from_json(raw), raw)
    program = program_signature(lowering.compilable, lowering.source, lowering.compilable.parameter_types)
    source = write_stub(signature, program, folder)
    stub = source.with_suffix(".so")
    build = toolchain.start(source, stub)
    library = build_recording_library(signature, folder)
    build.wait()
    return _host.load(stub, library), Recorder(library)
