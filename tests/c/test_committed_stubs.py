"""The committed stubs of icon4py's programs compile without a warning, and hosts open and call them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gtstub.stub.signature.documents import sdfg_from_json
from gtstub.stub.signature.model import SdfgSignature
from tests.support import target
from tests.support.c_hosts import ENVIRONMENT, Build, plain
from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import build_null_library

EXAMPLES = ROOT / "examples"
STUBS = sorted((EXAMPLES / "icon4py").glob("*/*_stub.c"))

COPY = """
#include <stddef.h>
#include <stdint.h>
#define EXPORT __attribute__((visibility("default")))
EXPORT void *__dace_init_copy_field(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int32_t g,
                                    int32_t h, int32_t i)
{
    static int handle;
    handle = a + b + c + d + e + f + g + h + i;
    return &handle;
}

EXPORT int __dace_exit_copy_field(void *handle)
{
    return handle == NULL;
}

EXPORT void __program_copy_field(void *handle, double *time, double *to, const double *from, int32_t cell,
                                 int32_t cells, int32_t level, int32_t levels, int32_t to_stride, int32_t from_cell,
                                 int32_t from_level, int32_t from_stride, int32_t metrics_level)
{
    (void)handle, (void)time, (void)metrics_level;
    for (int32_t k = 0; k < levels - level; ++k)
        for (int32_t i = 0; i < cells - cell; ++i)
            to[i + k * to_stride] = from[i + cell - from_cell + (k + level - from_level) * from_stride];
}
"""
"""What icon4py's program computes, in C."""


def signature_of(stub: Path) -> SdfgSignature:
    """Of one of several variants, the name of the stub contains the values of the static arguments."""
    variant = stub.stem.removeprefix(stub.parent.name).removesuffix("stub").strip("_")
    file = stub.parent / f"{variant}.sdfg.json".lstrip(".")
    return sdfg_from_json(file.read_text(encoding="utf-8"), file.name)


def build_committed(build: Build, stub: Path) -> Path:
    folder = build.folder / "committed" / stub.stem
    folder.mkdir(parents=True, exist_ok=True)
    build.shared(f"committed/{stub.stem}/{stub.name.replace('.c', '.so')}", stub, "-fvisibility=hidden")
    return folder


@plain
def test_a_host_opens_all(build: Build) -> None:
    assert len(STUBS) > 20
    folders = []
    for stub in STUBS:
        folders.append(build_committed(build, stub))
        build_null_library(signature_of(stub), folders[-1], build.command)
    opened = build.run("names.c", *map(str, folders), stubs=[])
    assert opened.splitlines() == [signature_of(stub).name for stub in STUBS]


@plain
def test_the_host_of_the_example(build: Build) -> None:
    (stub,) = (stub for stub in STUBS if stub.stem == "copy_field_stub")
    folder = build_committed(build, stub)
    (folder / "copy.c").write_text(COPY, encoding="utf-8")
    build.shared(f"committed/{stub.stem}/libcopy_field.so", folder / "copy.c")
    shutil.copy(stub.with_suffix(".h"), build.folder)
    host = build.executable(EXAMPLES / "c_host" / "host.c", f"committed/{stub.stem}/copy_field_stub.so")
    done = subprocess.run(
        target.command(host, folder), capture_output=True, text=True, check=False, cwd=build.folder, env=ENVIRONMENT
    )
    assert (done.returncode, done.stdout) == (0, "   1.0   2.0   3.0\n  10.0  20.0  30.0\n"), done.stderr
