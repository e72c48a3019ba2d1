"""The program 'scale', which multiplies a field by a factor: its signatures, and the library that DaCe would build."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from gtstub.stub.signature.model import Axis
from tests.support.compiled import compile_once
from tests.support.signatures import K, array, field, program, scalar, sdfg, symbol

SDFG = sdfg(
    array("out", Axis(stride=1), access="write"),
    array("x", Axis(stride=1)),
    symbol("__n", ("out", 0, "size"), ("x", 0, "size")),
    symbol("factor", dtype="float64"),
    name="scale",
)
PROGRAM = program("scale", x=field(K), factor=scalar("float64"), out=field(K))

N = 5
"""Elements of the fields of most tests."""

LIBRARY = """
void *__dace_init_scale(void) {{ static int handle; return &handle; }}
int __dace_exit_scale(void *handle) {{ return handle == (void *)0; }}
void __program_scale(void *handle, double *out, double *x, int n, double factor)
{{
    (void)handle;
    for (int i = 0; i < n; ++i)
        out[i] = {times} * factor * x[i];
}}
"""


def write_sources(folder: Path) -> None:
    """Writes both signatures and the SDFG's library into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.sdfg.json").write_text(sdfg_to_json(SDFG))
    (folder / "scale.program.json").write_text(program_to_json(PROGRAM))
    build_library(folder)


def build_library(folder: Path, times: int = 1) -> None:
    text = LIBRARY.format(times=times)
    (folder / "library.c").write_text(text)
    command = ["cc", "-shared", "-fPIC", "library.c", "-o", "libscale.so"]
    compile_once((*command, text), folder / "libscale.so", lambda: subprocess.run(command, cwd=folder, check=True))
