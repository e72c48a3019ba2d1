"""Fortran hosts choose the streams of programs for a GPU, on the stand-in for the CUDA runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtstub.install import RUNTIME
from tests.support.fake_cuda import build as build_fake
from tests.support.fake_cuda import sdfg_compiler
from tests.support.fortran_hosts import Build, run
from tests.support.programs import needs
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import GATHER_PROGRAM, GATHER_SDFG, SMALL_PROGRAM, SMALL_SDFG, on_gpu
from tests.support.stubs import write_stub

HERE = Path(__file__).parent

pytestmark = [needs("gfortran"), pytest.mark.xdist_group("build_of")]  # with those that compile the runtime, too


def test_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = build_fake()
    build = Build(on_gpu(SMALL_SDFG), SMALL_PROGRAM, tmp_path, ("-g", "-O2"))
    build_recording_library(on_gpu(SMALL_SDFG), tmp_path, sdfg_compiler(fake))
    source = write_stub(GATHER_SDFG, GATHER_PROGRAM, tmp_path)
    build.c("gather_stub.so", source, "-shared", "-fvisibility=hidden", "-L.", f"-l:{RUNTIME.name}")
    build_recording_library(GATHER_SDFG, tmp_path)
    monkeypatch.setenv("FAKE_CUDA_LOG", str(tmp_path / "log"))
    done = run(build.host(HERE / "harness.f90", HERE / "streams.f90", libraries=[fake, f"-Wl,-rpath,{fake.parent}"]))
    assert done.returncode == 0, done.stdout + done.stderr

    work = (
        "cudaMallocAsync bytes=1000",
        "cudaLaunchKernel first_kernel",
        "cudaLaunchKernel second_kernel",
        "cudaFreeAsync",
    )
    expected = [f"{one} stream={number}" for number in done.stdout.split() for one in work]
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [line for line in log if line.startswith(work)] == expected
    assert len(set(done.stdout.split())) == 3
    first = next(i for i, line in enumerate(log) if line.startswith(work))
    assert not [line for line in log[first:-4] if "Synchronize" in line]
