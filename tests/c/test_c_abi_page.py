"""The example of docs/c-abi.md, compiled and run as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from gtstub.signature.model import Axis
from gtstub.toolchain import INCLUDE, RUNTIME, Toolchain
from signatures import K, array, field, program, scalar, sdfg, symbol
from stubs import build_stub

PAGE = (Path(__file__).parents[2] / "docs" / "c-abi.md").read_text(encoding="utf-8")

SDFG = sdfg(
    array("out", Axis(stride=1), access="write"),
    array("x", Axis(stride=1)),
    symbol("__n", ("out", 0, "size"), ("x", 0, "size")),
    symbol("factor", dtype="float64"),
    name="scale",
)
PROGRAM = program("scale", x=field(K), factor=scalar("float64"), out=field(K))

# What DaCe would have built.
LIBRARY = """
void *__dace_init_scale(void) { static int handle; return &handle; }
int __dace_exit_scale(void *handle) { return handle == (void *)0; }
void __program_scale(void *handle, double *out, double *x, int n, double factor)
{
    (void)handle;
    for (int i = 0; i < n; ++i)
        out[i] = factor * x[i];
}
"""


def block(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(text)


def test_example(tmp_path: Path, toolchain: Toolchain) -> None:
    build_stub(SDFG, PROGRAM, tmp_path, toolchain)
    (tmp_path / "scale.c").write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "scale.c", "-o", "libscale.so"], cwd=tmp_path, check=True)
    (tmp_path / "host.c").write_text(block("c"))
    (tmp_path / "python").symlink_to(sys.executable)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    environment = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    commands = f"set -e\n{block('sh')}./host\n"
    done = subprocess.run(["sh", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2.5 5 7.5\n"), done.stderr


def test_soname_is_the_abi() -> None:
    assert RUNTIME.name == f"libgtstub.so.{re.search(r'GTS_ABI (\d+)', header())[1]}"  # type: ignore[index]


def header() -> str:
    return (INCLUDE / "gtstub" / "gtstub.h").read_text(encoding="utf-8")


def test_members_of_an_array_are_on_the_page() -> None:
    body = re.search(r"typedef struct gts_array \{(.*?)\} gts_array;", header(), re.DOTALL)
    assert body is not None
    members = re.findall(r"^ +[\w ]+?[ *](\w+)(?: : \d+|\[\w+\])?;", body[1], re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)(?:\[i\])?` \|", PAGE, re.MULTILINE)
    assert members == rows
