"""Programs with their SDFG's library for the judge of bounds: built by one call of the compiler, without CMake."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dace

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.stub.codegen.stub import make_stub
from gtstub.stub.plan.model import CallPlan
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support.gt4py_programs import aligned_workspace

INCLUDE = Path(dace.__file__).parent / "runtime" / "include"
_FLAGS = ("-std=c++20", "-fPIC", "-w", f"-I{INCLUDE}")
PLAIN = ("-O0", *_FLAGS)
"""For all accesses that an SDFG makes: compilers remove those whose results are not used."""

OPTIMIZED = ("-O1", *_FLAGS)


@dataclasses.dataclass(frozen=True)
class BoundProgram:
    """A program with the check of its bounds, and the same one without."""

    sdfg: SdfgSignature
    signature: ProgramSignature
    plan: CallPlan
    checked: _host.Program
    unchecked: _host.Program


def build(
    raw: Mapping[str, Any],
    signature: ProgramSignature,
    folder: Path,
    toolchain: Toolchain,
    flags: tuple[str, ...] = PLAIN,
) -> BoundProgram:
    """Builds an SDFG in its JSON form and both stubs."""
    sdfg = dace.SDFG.from_json(raw)
    with_bounds = sdfg_signature(sdfg, raw, evaluates_both=True)
    without = dataclasses.replace(with_bounds, bounds=None)
    library = folder / with_bounds.library
    with make_backend(gpu=False).executor.compilation.build.context():
        (code,) = (each for each in sdfg.generate_code() if each.language == "cpp" and each.name == sdfg.name)
    text = code.clean_code.replace('#include "../../include/hash.h"', "")
    (folder / "sdfg.cpp").write_text(text, encoding="utf-8")
    command = ["c++", *flags, "-include", str(_header(flags)), "-shared", "-o", str(library), str(folder / "sdfg.cpp")]
    compiler = subprocess.Popen(command)
    stubs = []
    for name, each in (("checked", with_bounds), ("unchecked", without)):
        (folder / name).mkdir()
        stub = make_stub(each, signature)
        for file, content in stub.files.items():
            (folder / name / file).write_text(content, encoding="utf-8")
        output = folder / name / f"{signature.name}_stub.so"
        toolchain.start(folder / name / stub.source, output).wait()
        stubs.append((stub.plan, output))
    assert compiler.wait() == 0
    (plan, checked), (_, unchecked) = stubs
    programs = [_host.load(stub, library) for stub in (checked, unchecked)]
    for workspace in with_bounds.workspaces:
        for program in programs:
            program.set_workspace(workspace.storage, aligned_workspace(1 << 16))
    return BoundProgram(with_bounds, signature, plan, *programs)


@functools.cache
def _header(flags: tuple[str, ...]) -> Path:
    """DaCe's header, compiled once: half of the time that the compiler needs for a small program."""
    folder = Path(tempfile.mkdtemp(prefix="gtstub-dace-"))
    header = folder / "dace_runtime.h"
    header.write_text("#include <dace/dace.h>\n", encoding="utf-8")
    subprocess.run(["c++", *flags, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return header
