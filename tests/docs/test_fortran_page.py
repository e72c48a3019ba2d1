"""The example of docs/fortran.md, compiled by hand and run as the page says; with CMake: frameworks/gt4py."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from gtstub.stub.signature.model import Axis
from tests.support import fortran_hosts
from tests.support.checkout import ROOT
from tests.support.pages import blocks, run_commands
from tests.support.programs import needs
from tests.support.signatures import EDGE, NEIGHBORS, VERTEX, K, array, field, program, scalar, sdfg, symbol

PAGE = (ROOT / "docs" / "fortran.md").read_text(encoding="utf-8")

pytestmark = [
    needs("gfortran"),
    needs("pkg-config"),
]

SDFG = sdfg(
    array("gt_conn_E2V", Axis(stride=1), Axis(size=2), dtype="int32"),
    array("out", Axis(stride=1), Axis(), access="write"),
    array("x", Axis(stride=1), Axis()),
    symbol("__conn_stride", ("gt_conn_E2V", 1, "stride")),
    symbol("__edges", ("out", 0, "size"), ("gt_conn_E2V", 0, "size")),
    symbol("__levels", ("out", 1, "size"), ("x", 1, "size")),
    symbol("__out_stride", ("out", 1, "stride")),
    symbol("__x_stride", ("x", 1, "stride")),
    symbol("factor", dtype="float64"),
    name="edge_mean",
)
PROGRAM = program("edge_mean", NEIGHBORS, x=field(VERTEX, K), factor=scalar("float64"), out=field(EDGE, K))

# What DaCe would have built.
LIBRARY = """
void *__dace_init_edge_mean(void) { static int handle; return &handle; }
int __dace_exit_edge_mean(void *handle) { return handle == (void *)0; }
void __program_edge_mean(void *handle, int *conn, double *out, double *x, int conn_stride, int edges, int levels,
                         int out_stride, int x_stride, double factor)
{
    (void)handle;
    for (int k = 0; k < levels; ++k)
        for (int e = 0; e < edges; ++e)
            out[e + k * out_stride] = factor * (x[conn[e] + k * x_stride] + x[conn[e + conn_stride] + k * x_stride]);
}
"""


def publish_entry(root: Path) -> Path:
    """A cache entry as far as this page needs it."""
    cache = Cache(root)
    with cache.private_directory("edge_mean") as directory:
        (directory / "sdfg.json").write_text(sdfg_to_json(SDFG), encoding="utf-8")
        (directory / "program.json").write_text(program_to_json(PROGRAM), encoding="utf-8")
        source = root / "edge_mean.c"
        source.write_text(LIBRARY, encoding="utf-8")
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", directory / "libedge_mean.so"], check=True)
        (directory / "edge_mean_stub.so").touch()
        return cache.publish(directory, "edge_mean", Manifest("edge_mean", "edge_mean_stub.so", "libedge_mean.so")).path


def test_example(tmp_path: Path) -> None:
    host = blocks(PAGE, "fortran")[1]
    assert host == (ROOT / "examples" / "edge_mean" / "host.f90").read_text(encoding="utf-8")
    (tmp_path / "host.f90").write_text(host, encoding="utf-8")
    commands = f"ENTRY={publish_entry(tmp_path / 'cache')}\n{blocks(PAGE, 'sh')[0]}"
    assert run_commands(commands, tmp_path).splitlines()[-1] == "   1.5   2.5   3.5  15.0  25.0  35.0"


def test_example_of_a_step(tmp_path: Path) -> None:
    (tmp_path / "host.f90").write_text(blocks(PAGE, "fortran")[2], encoding="utf-8")
    commands = f"ENTRY={publish_entry(tmp_path / 'cache')}\n{blocks(PAGE, 'sh')[0]}"
    assert run_commands(commands, tmp_path).splitlines()[-3:] == [
        "exchange   1.5   2.5   3.5  15.0  25.0  35.0",
        "exchange  15.0  25.0  35.0 150.0 250.0 350.0",
        "other      3.0   5.0   7.0  30.0  50.0  70.0",
    ]


def test_every_procedure_of_the_module_is_on_the_page() -> None:
    module = (fortran_hosts.RUNTIME_SOURCES / "fortran" / "gtstub.f90").read_text(encoding="utf-8")
    public = set(re.findall(r"gts_\w+", " ".join(re.findall(r"^    public :: (.*)$", module, re.MULTILINE))))
    assert public - {"gts_profile", "gts_checks"} <= set(re.findall(r"gts_\w+", PAGE))
