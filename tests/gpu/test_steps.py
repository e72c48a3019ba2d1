"""Bound calls and steps of programs for a GPU: kernels, streams, graphs, and what is refused."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.errors import CaptureError
from gtstub.toolchain.compiler import Toolchain
from tests.gpu.conftest import launches
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.hosting import EDGES, LEVELS, Bound, edge_field
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


def test_a_step_becomes_a_graph(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    inner = gtstub.Step([bound.program.bind(vn, vn)])
    step = gtstub.Step([bound.program.bind(vn, vn), inner])
    step()
    fake.synchronize()
    fake.clear()
    graph = step.as_graph()
    fake.synchronize()
    assert fake.ran() == []
    fake.clear()
    graph()
    assert kernels(fake) == ["first_kernel stream=0", "second_kernel stream=0"] * 2
    assert launches(fake) == []
    stream = fake.stream(1)
    fake.clear()
    with gtstub.stream(stream):
        graph()
        graph(None)
    streams = [line.partition("stream=")[2] for line in fake.log() if line.startswith("cudaGraphLaunch")]
    assert streams == [str(fake.stream_number(stream)), "0"]


def test_captured_calls_become_a_graph(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    with gtstub.capture() as step:
        bound.program(vn, vn)
    fake.clear()
    step.as_graph()()
    assert kernels(fake)[-2:] == ["first_kernel stream=0", "second_kernel stream=0"]


def test_a_graph_keeps_the_arrays_of_its_step(fake: FakeCuda, bound: Bound) -> None:
    array = edge_field(DeviceArray(fake, np.zeros((EDGES, LEVELS))))
    step = gtstub.Step([bound.program.bind(array, array)])
    step()
    graph = step.as_graph()
    is_there = weakref.ref(array)
    del step, array
    assert is_there() is not None
    del graph
    assert is_there() is None


def test_a_step_with_a_function_is_no_graph(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    called: list[int] = []
    inner = gtstub.Step([bound.program.bind(vn, vn), lambda: called.append(1)])
    step = gtstub.Step([bound.program.bind(vn, vn), inner], name="dynamics")
    bound.program(vn, vn)
    with pytest.raises(RuntimeError) as caught:
        step.as_graph()
    assert str(caught.value) == (
        "Step 'dynamics' cannot become a graph: position 2.2 is a function, which a graph does not call."
    )
    assert called == []


def test_a_step_that_fails_captures_nothing(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    step = gtstub.Step([bound.program.bind(vn, vn)])
    bound.program(vn, vn)
    bound.recorder.behaviour.waits = True
    with pytest.raises(RuntimeError) as caught:
        step.as_graph()
    assert str(caught.value) == (
        "Step 'step' has stopped at position 1 of 1, program 'diffusion': Program 'diffusion' cannot be part of a"
        " graph, because it waits for the GPU: it measures times, is a program of DaCe, or was built with"
        " async_sdfg_call=False."
    )
    bound.recorder.behaviour.waits = False
    step.as_graph()()


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
