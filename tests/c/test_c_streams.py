"""C hosts choose the streams of programs for a GPU, on the stand-in for the CUDA runtime."""

from __future__ import annotations

import subprocess

from gtstub.abi import SONAME
from tests.support import target
from tests.support.c_hosts import ENVIRONMENT, SOURCES, WHOLE, Build, address
from tests.support.fake_cuda import SOURCES as FAKE_SOURCES
from tests.support.fake_cuda import build as build_fake
from tests.support.fake_cuda import sdfg_compiler
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG, on_gpu
from tests.support.stubs import write_stub


@address
def test_streams(build: Build) -> None:
    fake, folder = build_fake(), build.folder / "gpu"
    signature = on_gpu(SMALL_SDFG)
    source = write_stub(signature, SMALL_PROGRAM, folder)
    build.shared("gpu/prog_stub.so", source, "-I", str(folder), "-fvisibility=hidden")
    library = build_recording_library(signature, folder, sdfg_compiler(fake))
    linked = (str(fake), f"-Wl,-rpath,{fake.parent}", "-L.", f"-l:{SONAME}", "-Wl,-rpath,$ORIGIN")
    build.compile("streams", SOURCES / "streams.c", "-I", str(FAKE_SOURCES), *linked)
    suppressions = folder / "suppressions"  # the stand-in keeps what was destroyed, to recognise it
    suppressions.write_text(f"leak:{fake.name}\n", encoding="utf-8")
    done = subprocess.run(
        target.command("./streams", "gpu/prog_stub.so", library, *WHOLE),
        cwd=build.folder,
        env={**ENVIRONMENT, "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
