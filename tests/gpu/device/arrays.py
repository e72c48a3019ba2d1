"""
Arrays, streams, events and kernels on a GPU, by CuPy: all that the tests and the benchmark need of it.

With GTSTUB_GPU_STAND_IN, the stand-in for the CUDA runtime takes its place (stand_in.py): calls and their order are the
same, but no kernel computes anything.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

KERNELS = r"""
extern "C" __global__ void wait_for(volatile const int *is_open, long long nanoseconds)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (*is_open == 0 && now - begin < nanoseconds);
}
extern "C" __global__ void fill(double *values, double value) { *values = value; }
extern "C" __global__ void empty() {}
extern "C" __global__ void fail(volatile int *address) { *address = 1; }
"""
GATE_SECONDS = 20
"""A gate that nobody opens lets pass after this time, so that nothing hangs."""


class Gate(Protocol):
    def open(self) -> None:
        """Lets the work pass that was put on the stream behind the gate."""


class Gpu(Protocol):
    """None is the default stream."""

    runs_kernels: bool

    def array(self, values: NDArray[Any], kind: str = "device") -> Any:
        """A copy of contiguous values, complete on return; `kind` is that of the memory: device, managed or pinned."""

    def values(self, array: Any) -> NDArray[Any]:
        """A copy on the host. All work on the array must be complete."""

    def stream(self) -> Any:
        """A new stream that is independent of the default stream."""

    def address(self, stream: Any) -> int: ...

    def wait(self, stream: Any = None) -> None: ...

    def is_idle(self, stream: Any = None) -> bool: ...

    def event(self, stream: Any = None) -> Any:
        """A new event that is recorded on the stream."""

    def is_complete(self, event: Any) -> bool: ...

    def milliseconds(self, begin: Any, end: Any) -> float: ...

    def gate(self, stream: Any = None) -> Gate:
        """A kernel that runs until its gate is opened."""

    def fill(self, array: Any, value: float, stream: Any = None) -> None:
        """Puts a kernel on the stream that sets the first element."""

    def fail(self, stream: Any = None) -> None:
        """Puts a kernel on the stream that writes to an illegal address."""


class CuPy:
    runs_kernels = True

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy
        self._gates: list[CuPyGate] = []  # A kernel may still read the memory of a gate that nobody has any more.
        module = cupy.RawModule(code=KERNELS)
        self._kernels = {name: module.get_function(name) for name in ("wait_for", "fill", "empty", "fail")}
        self._launch("empty", None)
        self.gate().open()  # The first launch of a kernel loads it, which may wait for all that runs.
        self.fill(self.array(np.zeros(1)), 1.0)
        self.wait()

    def array(self, values: NDArray[Any], kind: str = "device") -> Any:
        if kind == "device":
            found = self._cupy.array(values, order="K")
        else:
            order = "F" if values.flags.f_contiguous else "C"
            found = self._cupy.ndarray(
                values.shape, values.dtype, memptr=self._memory(kind, values.nbytes), order=order
            )
            found.set(values)
        self.wait()
        return found

    def _memory(self, kind: str, size: int) -> Any:
        if kind == "managed":
            return self._cupy.cuda.malloc_managed(size)
        pinned = self._cupy.cuda.alloc_pinned_memory(size)
        memory = self._cupy.cuda.UnownedMemory(pinned.ptr, size, pinned)
        return self._cupy.cuda.MemoryPointer(memory, 0)

    def values(self, array: Any) -> NDArray[Any]:
        return np.array(self._cupy.asnumpy(array, order="A"))

    def stream(self) -> Any:
        return self._cupy.cuda.Stream(non_blocking=True)

    def address(self, stream: Any) -> int:
        return int(self._stream(stream).ptr)

    def wait(self, stream: Any = None) -> None:
        self._stream(stream).synchronize()

    def is_idle(self, stream: Any = None) -> bool:
        return bool(self._stream(stream).done)

    def event(self, stream: Any = None) -> Any:
        found = self._cupy.cuda.Event()
        found.record(self._stream(stream))
        return found

    def is_complete(self, event: Any) -> bool:
        return bool(event.done)

    def milliseconds(self, begin: Any, end: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(begin, end))

    def gate(self, stream: Any = None) -> Gate:
        gate = CuPyGate(self._cupy.cuda.alloc_pinned_memory(4))
        self._gates.append(gate)
        self._launch("wait_for", stream, np.uint64(gate.address), np.int64(GATE_SECONDS * 10**9))
        return gate

    def fill(self, array: Any, value: float, stream: Any = None) -> None:
        self._launch("fill", stream, array, np.float64(value))

    def fail(self, stream: Any = None) -> None:
        self._launch("fail", stream, np.uint64(8))

    def _launch(self, kernel: str, stream: Any, *arguments: Any) -> None:
        with self._stream(stream):
            self._kernels[kernel]((1,), (1,), arguments)

    def _stream(self, stream: Any) -> Any:
        return self._cupy.cuda.Stream.null if stream is None else stream


class CuPyGate:
    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.address = int(memory.ptr)
        self._is_open = np.frombuffer(memory, np.int32, 1)
        self._is_open[0] = 0

    def open(self) -> None:
        self._is_open[0] = 1


def missing() -> str:
    """Why there is no GPU to use here; empty if there is one."""
    if "GTSTUB_GPU_STAND_IN" in os.environ:
        return ""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "This machine has no driver for GPUs."
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "This machine has no GPU."
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed."
    if "gtstub-fake-cuda" in Path("/proc/self/maps").read_text(encoding="utf-8"):
        return "This process has loaded the stand-in for the CUDA runtime; run tests/gpu/device alone."
    return ""


def find() -> Gpu:
    """The GPU; missing() must be empty."""
    if "GTSTUB_GPU_STAND_IN" in os.environ:
        from tests.gpu.device.stand_in import StandIn

        return StandIn()
    return CuPy()
