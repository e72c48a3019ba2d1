"""What arrays.py offers, on the stand-in for the CUDA runtime. Work is pending until the host waits or asks for it."""

from __future__ import annotations

import ctypes
from typing import Any

from numpy.typing import NDArray

from tests.support.fake_cuda import DeviceArray, FakeCuda, build

ALLOCATORS = {"device": "cudaMalloc", "managed": "cudaMallocManaged", "pinned": "cudaMallocHost"}


class StandIn:
    runs_kernels = False

    def __init__(self) -> None:
        self._fake = FakeCuda(build())
        self._kernels = {name: self._fake.kernel(name) for name in ("wait_for", "fill", "fail")}
        self._fake.fail("fail", 700)

    def log(self) -> list[str]:
        """What was called since the last time."""
        lines = self._fake.log()
        self._fake.clear()
        return lines

    def array(self, values: NDArray[Any], kind: str = "device") -> Any:
        return DeviceArray(self._fake, values, ALLOCATORS[kind])

    def values(self, array: DeviceArray) -> NDArray[Any]:
        return array.get()

    def stream(self) -> int:
        return self._fake.stream(1)

    def address(self, stream: int | None) -> int:
        return stream or 0

    def wait(self, stream: int | None = None) -> None:
        self._fake.synchronize(stream or 0)

    def is_idle(self, stream: int | None = None) -> bool:
        return self._fake.call("cudaStreamQuery", stream or 0) == 0

    def event(self, stream: int | None = None) -> int:
        event = self._fake.event()
        self._fake.call("cudaEventRecord", event, stream or 0)
        return event

    def is_complete(self, event: int) -> bool:
        return self._fake.call("cudaEventQuery", event) == 0

    def milliseconds(self, begin: int, end: int) -> float:
        found = ctypes.c_float()
        self._fake.call("cudaEventElapsedTime", ctypes.byref(found), begin, end)
        return found.value

    def gate(self, stream: int | None = None) -> StandInGate:
        self._fake.launch(self._kernels["wait_for"], stream or 0)
        return StandInGate()

    def fill(self, array: DeviceArray, value: float, stream: int | None = None) -> None:
        self._fake.launch(self._kernels["fill"], stream or 0)

    def fail(self, stream: int | None = None) -> None:
        self._fake.launch(self._kernels["fail"], stream or 0)


class StandInGate:
    def open(self) -> None:
        """The stand-in lets all work pass when the host waits for it."""
