"""The calls of a block become one graph, or the program that cannot be part of it is named."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.signature.model import Workspace
from gtstub.toolchain.compiler import Toolchain
from tests.gpu.conftest import bind, launches
from tests.gpu.test_errors import run
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.graphs import Captured
from tests.support.hosting import Bound, good_arguments


@pytest.fixture
def called(bound: Bound, vn: Any, fake: FakeCuda) -> Bound:
    """A program that has been called once."""
    bound.program(vn, vn)
    fake.synchronize()
    fake.clear()
    return bound


def refused(program: Any, *arguments: Any, **keywords: Any) -> str:
    """The error of a program in the block of a graph, after which programs work as before."""
    graph = Captured()
    with pytest.raises(RuntimeError) as caught, graph:
        program(*arguments, **keywords)
    assert _host.get_stream() is None
    return str(caught.value)


def test_a_graph_has_the_calls_of_its_block(fake: FakeCuda, called: Bound, vn: Any) -> None:
    with Captured() as graph:
        called.program(vn, vn)
        called.program(vn, vn)
    fake.synchronize()
    assert fake.ran() == []
    fake.clear()
    graph()
    graph()
    fake.synchronize()
    kernels = [line for line in fake.ran() if "kernel" in line]
    assert kernels == ["first_kernel stream=0", "second_kernel stream=0"] * 4
    assert launches(fake) == []


def test_a_graph_is_launched_on_the_current_stream_or_on_another(fake: FakeCuda, called: Bound, vn: Any) -> None:
    with Captured() as graph:
        called.program(vn, vn)
    current, other = fake.stream(1), fake.stream(1)
    fake.clear()
    with gtstub.stream(current):
        graph()
        graph(other)
        graph(None)
    streams = [line.partition("stream=")[2] for line in fake.log() if line.startswith("cudaGraphLaunch")]
    assert streams == [str(fake.stream_number(each)) for each in (current, other)] + ["0"]


def test_programs_use_their_streams_again_after_the_block(fake: FakeCuda, called: Bound, vn: Any) -> None:
    stream = fake.stream(1)
    with gtstub.stream(stream):
        with Captured():
            called.program(vn, vn)
        fake.clear()
        called.program(vn, vn)
    number = fake.stream_number(stream)
    assert launches(fake) == [f"first_kernel stream={number}", f"second_kernel stream={number}"]
    assert called.program.stream is None


def test_graphs_are_freed(fake: FakeCuda, called: Bound, vn: Any) -> None:
    with Captured() as graph:
        called.program(vn, vn)
    fake.clear()
    del graph
    freed = [line.split()[0] for line in fake.log()]
    assert freed == ["cudaGraphExecDestroy", "cudaStreamDestroy"]


def test_the_first_call_cannot_be_captured(
    fake: FakeCuda, called: Bound, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    new = bind("advection", tmp_path / "advection", toolchain, init=True)
    assert refused(new.program, vn, vn) == (
        "Program 'advection' allocates memory in this call, so its stream must not be captured: call it once before,"
        " with the same sizes."
    )
    new.program(vn, vn)


def test_a_program_on_the_cpu_cannot_be_captured(called: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    on_cpu = Bound(tmp_path / "cpu", toolchain)
    on_cpu.program(**good_arguments())
    calls = len(on_cpu.recorder.calls())
    name = on_cpu.program.name
    assert refused(on_cpu.program, **good_arguments()) == (
        f"Program '{name}' runs on the CPU and cannot be part of a graph."
    )
    assert len(on_cpu.recorder.calls()) == calls
    on_cpu.program(**good_arguments())


def test_a_program_with_a_stream_of_its_own_cannot_be_captured(fake: FakeCuda, called: Bound, vn: Any) -> None:
    called.program.stream = fake.stream(1)
    fake.clear()
    assert refused(called.program, vn, vn) == (
        "Program 'diffusion' has a stream of its own and cannot be part of a graph."
    )
    assert launches(fake) == []


def test_a_program_that_waits_cannot_be_captured(fake: FakeCuda, called: Bound, vn: Any) -> None:
    called.recorder.behaviour.waits = True
    assert refused(called.program, vn, vn) == (
        "Program 'diffusion' cannot be part of a graph, because it waits for the GPU: it measures times, is a"
        " program of DaCe, or was built with async_sdfg_call=False."
    )
    called.recorder.behaviour.waits = False
    called.program(vn, vn)


def test_a_block_that_waits_is_no_fault_of_the_next_program(fake: FakeCuda, called: Bound, vn: Any) -> None:
    def wait_and_call() -> None:
        fake.call("cudaStreamSynchronize", ctypes.c_void_p(_host_stream()))
        called.program(vn, vn)

    assert refused(wait_and_call) == (
        "Program 'diffusion' cannot be part of a graph: something that was called before it has waited for the GPU,"
        " which ends the capture."
    )


def _host_stream() -> int:
    """The stream that is captured, which only C knows."""
    runtime = ctypes.CDLL(_host.__file__)
    runtime.gts_stream.restype = ctypes.c_void_p
    runtime.gts_stream.argtypes = (ctypes.c_void_p,)
    return int(runtime.gts_stream(None))


def in_a_thread(function: Callable[[], None]) -> Exception | None:
    with ThreadPoolExecutor() as pool:
        error = pool.submit(function).exception()
    assert error is None or isinstance(error, Exception)
    return error


def test_another_thread_cannot_put_its_calls_into_a_graph(
    fake: FakeCuda, called: Bound, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    on_cpu, apart = Bound(tmp_path / "cpu", toolchain), bind("advection", tmp_path / "advection", toolchain)
    apart.program.stream = stream = fake.stream(1)
    on_cpu.program(**good_arguments())
    apart.program(vn, vn)
    fake.clear()
    with Captured():
        error = in_a_thread(lambda: called.program(vn, vn))
        assert str(error) == "Program 'diffusion' cannot be called while another thread captures a graph."
        assert launches(fake) == []
        assert in_a_thread(lambda: on_cpu.program(**good_arguments())) is None
        assert in_a_thread(lambda: apart.program(vn, vn)) is None
        with pytest.raises(RuntimeError):
            on_cpu.program(**good_arguments())
    number = fake.stream_number(stream)
    assert launches(fake) == [f"{kernel} stream={number}" for kernel in ("first_kernel", "second_kernel")]


def test_the_stream_of_all_programs_stays_in_a_block(fake: FakeCuda, called: Bound, vn: Any) -> None:
    fake.clear()
    with Captured() as graph:
        with pytest.raises(RuntimeError) as caught, gtstub.stream(fake.stream(1)):
            pytest.fail("the block was entered")
        called.program(vn, vn)
    graph()
    assert str(caught.value) == "The stream of all programs cannot be set while a graph is being captured."


def test_a_graph_is_not_launched_in_the_block_of_another(fake: FakeCuda, called: Bound, vn: Any) -> None:
    with Captured() as first:
        called.program(vn, vn)
    fake.clear()
    with Captured(), pytest.raises(RuntimeError) as caught:
        first()
    assert str(caught.value) == "A graph cannot be launched while another one is being captured."
    assert not [line for line in fake.log() if line.startswith("cudaGraphLaunch")]
    first()


def test_a_capture_ends_once(fake: FakeCuda, called: Bound, vn: Any) -> None:
    """The second end must not end the capture of another graph, nor change the stream."""
    first = _host.begin_graph()
    _host.end_graph(first)
    second = _host.begin_graph()
    with pytest.raises(RuntimeError) as caught:
        _host.end_graph(first)
    assert str(caught.value) == "The capture of a graph has already ended."
    called.program(vn, vn)
    _host.end_graph(second)
    assert [line.rpartition(" ")[2] for line in launches(fake)] == ["captured"] * 2


def test_an_abandoned_graph_does_not_keep_a_call_from_ending(tmp_path: Path) -> None:
    """The end of its capture waits for the call, and the call waits for the GIL."""
    script = """
        import threading, time
        from gtstub import _host
        is_read = threading.Event()

        class Slow:
            @property
            def __cuda_array_interface__(self):
                is_read.set()
                time.sleep(0.1)
                return vn._ndarray.__cuda_array_interface__

        call(programs[0])
        graph = _host.begin_graph()
        thread = threading.Thread(target=lambda: programs[0](vn, Slow()))
        thread.start()
        is_read.wait()
        del graph
        thread.join()
        call(programs[0])
    """
    assert run(script, tmp_path) == ["no error"] * 2


def test_an_argument_can_free_the_graph_that_captures(tmp_path: Path) -> None:
    """The capture ends, and with it the calls go back to their stream, among them the one that reads the argument."""
    script = """
        import gtstub
        from gtstub import _host
        from tests.gpu.conftest import launches

        class Freeing:
            @property
            def __cuda_array_interface__(self):
                graphs.clear()
                return vn._ndarray.__cuda_array_interface__

        stream = fake.stream(1)
        with gtstub.stream(stream):
            for program in programs:
                call(program)
            graphs = [_host.begin_graph()]
            fake.clear()
            programs[0](vn, Freeing())
            call(programs[1])
            expected = [f"{kernel} stream={fake.stream_number(stream)}" for kernel in ("first_kernel", "second_kernel")]
            assert launches(fake) == 2 * expected, fake.log()
        call(programs[0])
    """
    assert run(script, tmp_path) == ["no error"] * 4


def test_a_graph_is_not_launched_on_memory_that_was_freed(
    fake: FakeCuda, called: Bound, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    closed = called.load()
    closed(vn, vn)
    resized = bind("advection", tmp_path / "advection", toolchain, Workspace("GPU_Global", "cuda"))
    resized.recorder.behaviour.workspace_bytes = 64
    workspaces = [DeviceArray(fake, np.zeros(64, np.uint8)) for _ in range(2)]
    resized.program.set_workspace("GPU_Global", workspaces[0])
    resized.program(vn, vn)
    graphs = [Captured() for _ in range(2)]
    for graph, program in zip(graphs, (closed, resized.program), strict=True):
        with graph:
            program(vn, vn)
            called.program(vn, vn)
        graph()
    del closed, program
    resized.program.set_workspace("GPU_Global", workspaces[1])
    for graph, name in zip(graphs, ("diffusion", "advection"), strict=True):
        fake.clear()
        with pytest.raises(RuntimeError) as caught:
            graph()
        assert str(caught.value) == (
            f"A graph cannot be launched any more: its program '{name}' was closed, or has got other memory since, for"
            " other sizes or another workspace. Capture it again."
        )
        assert not [line for line in fake.log() if line.startswith("cudaGraphLaunch")]


def test_blocks_do_not_nest(called: Bound) -> None:
    with Captured():
        with pytest.raises(RuntimeError) as caught, Captured():
            pytest.fail("the block was entered")
        assert str(caught.value) == "A graph cannot be captured while another one is being captured."


def test_a_capture_that_fails(fake: FakeCuda, called: Bound, vn: Any) -> None:
    fake.fail("cudaStreamBeginCapture", 2)
    with pytest.raises(RuntimeError) as caught, Captured():
        pytest.fail("the block was entered")
    assert str(caught.value) == "A graph cannot be captured: error 2 (cudaErrorMemoryAllocation: out of memory)."
    fake.recover()
    fake.fail("cudaGraphInstantiate", 2)
    with pytest.raises(RuntimeError) as caught, Captured():
        called.program(vn, vn)
    fake.recover()
    assert _host.get_stream() is None
    fake.clear()
    called.program(vn, vn)
    assert launches(fake) == ["first_kernel stream=0", "second_kernel stream=0"]
