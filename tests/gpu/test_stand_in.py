"""The stand-in for the CUDA runtime does what CUDA documents, and says what was called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.fake_cuda import build
from tests.support.hosting import run_script

START = """
import ctypes, sys
from pathlib import Path
import numpy as np
from tests.support.fake_cuda import DEVICE, HOST, MANAGED, DeviceArray, FakeCuda

fake = FakeCuda(Path(sys.argv[1]))
call = fake.call

def told():
    lines = fake.log()
    fake.clear()
    return lines
"""


def run(text: str, *arguments: object, **environment: str) -> None:
    """Runs the assertions of a text in a process with the stand-in."""
    run_script(START + text, build(), *arguments, environment=environment.items())


# --- Work on streams --------------------------------------------------------------------------------------------------


def test_work_is_pending_until_the_host_waits_for_its_stream() -> None:
    run("""
first, second = fake.kernel("_Z5firstPd"), fake.kernel("second")
a, b = fake.stream(flags=1), fake.stream(flags=1)
fake.clear()
fake.launch(first, a); fake.launch(second, b); fake.launch(second, a)
launches = ["first stream=1", "second stream=2", "second stream=1"]
assert told() == [f"cudaLaunchKernel {launch}" for launch in launches]
assert fake.ran() == []
fake.synchronize(a)
assert fake.ran() == ["first stream=1", "second stream=1"]
assert call("cudaDeviceSynchronize") == 0
assert fake.ran()[2:] == ["second stream=2"]
""")


def test_a_query_finds_pending_work_once() -> None:
    run("""
kernel, stream = fake.kernel("kernel"), fake.stream()
assert call("cudaStreamQuery", stream) == 0
fake.launch(kernel, stream)
assert [call("cudaStreamQuery", stream) for _ in range(3)] == [600, 0, 0]
event = fake.event()
fake.launch(kernel, stream)
call("cudaEventRecord", event, stream)
assert [call("cudaEventQuery", event) for _ in range(3)] == [600, 0, 0]
""")


def test_the_default_stream_runs_between_the_work_of_streams_that_do_not_say_otherwise() -> None:
    run("""
kernel = fake.kernel("kernel")
blocking, other = fake.stream(), fake.stream(flags=1)
for stream in (blocking, other, 0, blocking):
    fake.launch(kernel, stream)
fake.synchronize(blocking)
assert fake.ran() == ["kernel stream=1", "kernel stream=0", "kernel stream=1"]
""")


def test_a_stream_waits_for_an_event_and_events_have_times() -> None:
    run("""
slow, fast = fake.kernel("slow"), fake.kernel("fast")
a, b = fake.stream(flags=1), fake.stream(flags=1)
start, end = fake.event(), fake.event()
call("cudaEventRecord", start, a)
fake.launch(slow, a); fake.launch(slow, a)
call("cudaEventRecord", end, a)
fake.launch(slow, a)
call("cudaStreamWaitEvent", b, end, 0)
fake.launch(fast, b)
elapsed = ctypes.c_float()
assert call("cudaEventElapsedTime", ctypes.byref(elapsed), start, end) == 600
fake.synchronize(b)
assert fake.ran() == ["slow stream=1", "slow stream=1", "fast stream=2"]
assert call("cudaEventElapsedTime", ctypes.byref(elapsed), start, end) == 0
assert elapsed.value == 2
""")


def test_a_stream_that_was_destroyed_is_refused_and_its_work_runs() -> None:
    run("""
kernel, stream = fake.kernel("kernel"), fake.stream()
fake.launch(kernel, stream)
assert call("cudaStreamDestroy", stream) == 0
fake.clear()
errors = fake.launch(kernel, stream), call("cudaStreamSynchronize", stream), fake.launch(kernel, 4096)
assert errors == (400, 400, 400)
assert told() == [
    "cudaLaunchKernel kernel stream=1 -> 400", "cudaStreamSynchronize stream=1 -> 400",
    "cudaLaunchKernel kernel stream=? -> 400",
]
call("cudaDeviceSynchronize")
assert fake.ran() == ["kernel stream=1"]
""")


def test_a_stream_belongs_to_a_device() -> None:
    run("""
fake.devices(2)
kernel = fake.kernel("kernel")
assert call("cudaSetDevice", 1) == 0
stream, device = fake.stream(), ctypes.c_int()
assert call("cudaStreamGetDevice", stream, ctypes.byref(device)) == 0
assert device.value == 1
assert call("cudaSetDevice", 0) == 0
assert fake.launch(kernel, stream) == 400
assert call("cudaSetDevice", 2) == 101
""")


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_memory_has_a_kind_and_a_device() -> None:
    run("""
fake.devices(2)
call("cudaSetDevice", 1)
host = np.zeros(10)
kinds = {"cudaMalloc": DEVICE, "cudaMallocHost": HOST, "cudaMallocManaged": MANAGED}
for function, kind in kinds.items():
    address = fake.malloc(100, function)
    found = fake.attributes(address + 99)
    assert (found.type, found.device, found.devicePointer) == (kind, 1, address + 99)
    assert found.hostPointer == (None if kind == DEVICE else address + 99)
    assert fake.attributes(address + 100).type == 0
    assert fake.allocations(kind) == 1
    assert call("cudaFreeHost" if kind == HOST else "cudaFree", address) == 0
    assert fake.attributes(address).type == 0
    assert fake.allocations(kind) == 0
found = fake.attributes(host.ctypes.data)
assert (found.type, found.device, found.devicePointer, found.hostPointer) == (0, -2, None, host.ctypes.data)
""")


def test_copies_read_memory_of_the_host_at_once_and_write_pinned_memory_later() -> None:
    run("""
stream, size = fake.stream(flags=1), 80
values, back = np.arange(10.0), np.zeros(10)
device, pinned = fake.malloc(size), fake.malloc(size, "cudaMallocHost")
assert call("cudaMemcpyAsync", device, values.ctypes.data, size, 1, stream) == 0
values[:] = 0
assert fake.ran() == []
assert call("cudaMemcpyAsync", back.ctypes.data, device, size, 2, stream) == 0
assert (back == np.arange(10.0)).all()
assert call("cudaMemsetAsync", device, 0, 8 * 5, stream) == 0
assert call("cudaMemcpyAsync", pinned, device, size, 2, stream) == 0
view = np.frombuffer((ctypes.c_char * size).from_address(pinned))
assert (view == 0).all()
fake.synchronize(stream)
assert view.tolist() == [0, 0, 0, 0, 0, 5, 6, 7, 8, 9]
assert call("cudaMemcpyAsync", back.ctypes.data, device + 8, size, 2, stream) == 1
assert call("cudaMemcpy", device, back.ctypes.data, size, 2) == 1
assert call("cudaMemcpy2DAsync", pinned, 16, device, 40, 8, 2, 4, stream) == 0
fake.synchronize(stream)
assert view[:4].tolist() == [0, 0, 5, 0]
""")


def test_the_host_cannot_read_memory_of_the_device() -> None:
    read = START + "ctypes.c_char.from_address(fake.malloc(8)).value"
    done = subprocess.run([sys.executable, "-c", read, build()], env={"PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.returncode == -11


def test_memory_of_a_stream_is_freed_when_the_stream_comes_to_it() -> None:
    run("""
stream, pointer = fake.stream(), ctypes.c_void_p()
fake.clear()
assert call("cudaMallocAsync", ctypes.byref(pointer), 100, stream) == 0
assert call("cudaFreeAsync", pointer, stream) == 0
assert told() == ["cudaMallocAsync bytes=100 stream=1", "cudaFreeAsync stream=1"]
assert fake.allocations() == 1
fake.synchronize(stream)
assert fake.allocations() == 0
assert call("cudaFreeAsync", pointer, stream) == 1
""")


# --- Errors -----------------------------------------------------------------------------------------------------------


def test_a_function_fails_when_a_test_asks_for_it() -> None:
    run("""
pointer = ctypes.c_void_p()
malloc = lambda: call("cudaMalloc", ctypes.byref(pointer), 8)
fake.fail("cudaMalloc", 2, after=1)
assert [malloc(), malloc(), malloc()] == [0, 2, 2]
assert told() == ["cudaMalloc bytes=8", "cudaMalloc bytes=8 -> 2", "cudaMalloc bytes=8 -> 2"]
assert [call("cudaPeekAtLastError"), call("cudaGetLastError"), call("cudaGetLastError")] == [2, 2, 0]
fake.fail("cudaMalloc", 0)
assert malloc() == 0
fake.devices(0)
assert malloc() == 100
""")


def test_a_kernel_fails_while_it_runs_and_the_error_stays() -> None:
    run("""
good, bad, stream = fake.kernel("good"), fake.kernel("bad"), fake.stream()
fake.fail("bad", 700)
assert [fake.launch(kernel, stream) for kernel in (good, bad, good)] == [0, 0, 0]
assert call("cudaGetLastError") == 0
assert call("cudaStreamSynchronize", stream) == 700
assert fake.ran() == ["good stream=1", "bad stream=1"]
assert [fake.launch(good, stream), call("cudaGetLastError"), call("cudaGetLastError")] == [700, 700, 700]
fake.recover()
assert [fake.launch(good, stream), call("cudaGetLastError")] == [0, 0]
""")


def test_a_process_starts_with_errors_devices_and_a_log(tmp_path: Path) -> None:
    run(
        """
pointer, count = ctypes.c_void_p(), ctypes.c_int()
assert [call("cudaMalloc", ctypes.byref(pointer), 8) for _ in range(2)] == [0, 2]
assert call("cudaSetDevice", 1) == 35
assert (call("cudaGetDeviceCount", ctypes.byref(count)), count.value) == (0, 3)
""",
        FAKE_CUDA_FAIL="cudaMalloc:1=2,cudaSetDevice=35",
        FAKE_CUDA_DEVICES="3",
        FAKE_CUDA_LOG=str(tmp_path / "log"),
    )
    assert (tmp_path / "log").read_text().splitlines() == [
        "cudaMalloc bytes=8",
        "cudaMalloc bytes=8 -> 2",
        "cudaSetDevice device=1 -> 35",
        "cudaGetDeviceCount",
    ]


# --- Graphs -----------------------------------------------------------------------------------------------------------

GRAPHS = """
first, second, stream, other = fake.kernel("first"), fake.kernel("second"), fake.stream(flags=1), fake.stream(flags=1)
graph, exec_, event = ctypes.c_void_p(), ctypes.c_void_p(), fake.event()
begin = lambda mode=0, on=stream: call("cudaStreamBeginCapture", on, mode)
end = lambda on=stream: call("cudaStreamEndCapture", on, ctypes.byref(graph))
fake.clear()
"""


def test_captured_work_runs_when_its_graph_is_launched() -> None:
    run(
        GRAPHS
        + """
pointer, status = ctypes.c_void_p(), ctypes.c_int()
assert begin() == 0
assert call("cudaMallocAsync", ctypes.byref(pointer), 8, stream) == 0
assert [fake.launch(first, stream), fake.launch(second, stream)] == [0, 0]
assert call("cudaMemsetAsync", pointer, 1, 8, stream) == 0
assert call("cudaFreeAsync", pointer, stream) == 0
assert (call("cudaStreamIsCapturing", stream, ctypes.byref(status)), status.value) == (0, 1)
assert fake.launch(second, other) == 0
assert end() == 0
assert told() == [
    "cudaStreamBeginCapture mode=0 stream=1", "cudaMallocAsync bytes=8 stream=1 captured",
    "cudaLaunchKernel first stream=1 captured", "cudaLaunchKernel second stream=1 captured",
    "cudaMemsetAsync bytes=8 stream=1 captured", "cudaFreeAsync stream=1 captured", "cudaStreamIsCapturing stream=1",
    "cudaLaunchKernel second stream=2", "cudaStreamEndCapture graph=1 stream=1",
]
assert call("cudaGraphInstantiate", ctypes.byref(exec_), graph, 0) == 0
assert call("cudaGraphDestroy", graph) == 0
for _ in range(2):
    fake.clear()
    assert call("cudaGraphLaunch", exec_, other) == 0
    assert fake.ran() == []
    fake.synchronize(other)
    assert fake.ran()[-3:] == ["first stream=2", "second stream=2", "set bytes=8 stream=2"]
assert fake.allocations() == 1
assert [call("cudaGraphExecDestroy", exec_), call("cudaGraphLaunch", exec_, other)] == [0, 400]
assert fake.allocations() == 0
"""
    )


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ('call("cudaStreamSynchronize", stream)', 900),
        ('call("cudaStreamQuery", stream)', 900),
        ('call("cudaDeviceSynchronize")', 900),
        ('call("cudaMalloc", ctypes.byref(graph), 8)', 900),
        ('call("cudaStreamSynchronize", other)', 900),
        ('call("cudaEventRecord", event, stream) or call("cudaEventSynchronize", event)', 907),
        ('call("cudaEventRecord", event, other) or call("cudaStreamWaitEvent", stream, event, 0)', 905),
    ],
)
def test_a_capture_is_invalidated_by_what_it_refuses(refused: str, error: int) -> None:
    run(
        GRAPHS
        + f"""
assert begin() == 0
assert {refused} == {error}
assert fake.launch(first, stream) == 901
assert end() == 901
assert [begin(), end()] == [0, 0]
"""
    )


def test_a_capture_follows_events_to_other_streams_and_must_come_back() -> None:
    run(
        GRAPHS
        + """
def fork():
    assert [begin(), call("cudaEventRecord", event, stream), call("cudaStreamWaitEvent", other, event, 0)] == [0, 0, 0]
    assert fake.launch(second, other) == 0
fork()
assert end(other) == 903
assert end() == 901
fork()
assert end() == 904
fork()
assert [call("cudaEventRecord", event, other), call("cudaStreamWaitEvent", stream, event, 0), end()] == [0, 0, 0]
assert call("cudaGraphInstantiate", ctypes.byref(exec_), graph, 0) == 0
assert call("cudaGraphLaunch", exec_, stream) == 0
fake.synchronize(stream)
assert fake.ran() == ["second stream=1"]
"""
    )


def test_what_cannot_be_captured() -> None:
    run(
        GRAPHS
        + """
import threading
blocking = fake.stream()
assert begin(on=0) == 900
assert [begin(on=blocking), fake.launch(first, 0), end(blocking)] == [0, 906, 901]
assert [begin(), begin(), fake.launch(first, 0), end()] == [0, 401, 0, 0]
assert end() == 401
assert begin() == 0
errors = []
thread = threading.Thread(target=lambda: errors.append(end()))
thread.start(); thread.join()
assert (errors, end()) == ([908], 901)
pointer = ctypes.c_void_p()
assert [begin(mode=2), call("cudaMalloc", ctypes.byref(pointer), 8), end()] == [0, 0, 0]
"""
    )
