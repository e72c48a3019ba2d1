"""
Programs for a GPU that run on the stand-in for the CUDA runtime (tests/gpu/fake/control.h), in this process, and those
that nvcc builds once for all tests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.cache.entry import Entry
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis, ScalarArgument, ScalarType, StaticArgument, Workspace
from tests.support import gpu_programs
from tests.support.fake_cuda import DeviceArray, FakeCuda, build, sdfg_compiler
from tests.support.hosting import EDGES, LEVELS, Bound, edge_field
from tests.support.signatures import EDGE, K, array, field, program, sdfg, symbol


@pytest.fixture(scope="session")
def _fake() -> FakeCuda:
    return FakeCuda(build())


@pytest.fixture
def fake(_fake: FakeCuda) -> Iterator[FakeCuda]:
    """The stand-in, with an empty log, one device and no failures."""
    _fake.recover()
    _fake.clear()
    yield _fake
    _fake.recover()
    _fake.devices(1)
    _host.set_stream(None)


def bind(
    name: str,
    folder: Path,
    toolchain: Toolchain,
    *workspaces: Workspace,
    init: bool = False,
    static: Mapping[str, int] = MappingProxyType({}),
    has_factor: bool = False,
) -> Bound:
    """
    A program that launches first_kernel and second_kernel: tests/gpu/fake/sdfg.c. With `init`, its handle depends on
    arguments, and so is initialised in the first call. `static` are integers after the two fields, `factor` is a
    zero-dimensional field.
    """
    signature = sdfg(
        array("out", Axis(), Axis(), device="cuda", access="write"),
        array("vn", Axis(), Axis(), device="cuda"),
        *((ScalarArgument("factor", "float64"),) if has_factor else ()),
        symbol("__vn_Edge_stride", ("vn", 0, "stride")),
        name=name,
        device="cuda",
        workspaces=workspaces,
        init=("__vn_Edge_stride",) if init else (),
    )
    rest = {each: ScalarType("int32") for each in static} | ({"factor": field()} if has_factor else {})
    statics = tuple(StaticArgument(each, value) for each, value in static.items())
    typed = program(name, vn=field(EDGE, K), out=field(EDGE, K), **rest)
    typed = dataclasses.replace(typed, static_arguments=statics)
    return Bound(folder, toolchain, signature, typed, sdfg_compiler(build()))


@pytest.fixture
def bound(fake: FakeCuda, tmp_path: Path, toolchain: Toolchain) -> Bound:
    found = bind("diffusion", tmp_path, toolchain)
    fake.clear()
    return found


@pytest.fixture
def vn(fake: FakeCuda) -> Any:
    """A field in memory of the device."""
    found = edge_field(DeviceArray(fake, np.zeros((EDGES, LEVELS))))
    fake.clear()
    return found


def launches(fake: FakeCuda) -> list[str]:
    """The kernels in the log, with their streams."""
    return [line.removeprefix("cudaLaunchKernel ") for line in fake.log() if line.startswith("cudaLaunchKernel")]


# --- With nvcc --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", params=["sm_80", "sm_90"])
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def entries(arch: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    """The programs of gpu_programs.PROGRAMS, built for `arch`."""
    return gpu_programs.build(arch, tmp_path_factory.mktemp("gpu") / arch)
