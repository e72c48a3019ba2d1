"""Bound calls and steps of programs for a GPU: kernels, streams, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError
from tests.support.fake_cuda import FakeCuda
from tests.support.hosting import Bound
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub


def kernels(fake: FakeCuda) -> list[str]:
    fake.synchronize()
    return [line for line in fake.ran() if "kernel" in line]


def test_a_step_puts_its_calls_on_the_stream(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    with gtstub.capture() as step:
        bound.program(vn, vn)
        bound.program(vn, vn)
    assert kernels(fake) == ["first_kernel stream=0", "second_kernel stream=0"] * 2
    fake.clear()
    step()
    step[0]()
    assert kernels(fake) == ["first_kernel stream=0", "second_kernel stream=0"] * 3
    stream = fake.stream(1)
    fake.clear()
    with gtstub.stream(stream):
        step()
    number = fake.stream_number(stream)
    assert kernels(fake) == [f"first_kernel stream={number}", f"second_kernel stream={number}"] * 2


def test_nothing_waits_for_the_gpu(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    step = gtstub.Step([bound.program.bind(vn, vn)])
    step()
    fake.clear()
    step()
    assert [line for line in fake.log() if "ynchronize" in line] == []


def test_captures_do_not_mix_devices(
    fake: FakeCuda, bound: Bound, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    build_library(tmp_path)
    scale = _host.load(build_stub(SDFG, PROGRAM, tmp_path, toolchain), tmp_path / "libscale.so")
    x = np.ones(3)

    def run() -> None:
        scale(x, 2.0, x)
        bound.program(vn, vn)

    with pytest.raises(CaptureError) as caught:
        gtstub.capture(run, name="both")
    assert str(caught.value) == (
        f"Step 'both' cannot be captured: program 'scale' runs on 'cpu', program '{bound.program.name}' on 'cuda'. "
        "Capture them apart."
    )
    step = gtstub.Step([scale.bind(x, 2.0, x), bound.program.bind(vn, vn)])  # by hand, their order is the caller's
    fake.synchronize()
    fake.clear()
    step()
    assert kernels(fake) == ["first_kernel stream=0", "second_kernel stream=0"]
    assert x.tolist() == [4.0] * 3
