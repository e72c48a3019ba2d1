"""
The stand-in for the CUDA runtime (tests/gpu/fake/control.h): builds it, loads it, and tells what was called.

A process uses it instead of libcudart.so.13 if it loads it before any other library that needs one, so it belongs in a
process of its own:

    fake = FakeCuda(Path(sys.argv[1]))  # what build() has returned
    ...  # load and call programs for a GPU
    assert fake.log() == ["cudaLaunchKernel first_kernel stream=0"]
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import c_compiler

SOURCES = ROOT / "tests" / "gpu" / "fake"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
HOST, DEVICE, MANAGED = 1, 2, 3
"""The kinds of memory."""


@functools.cache
def build(*flags: str) -> Path:
    """The library, libcudart.so.13 in a folder of its own; `flags` are more of the compiler's."""
    output = Path(tempfile.mkdtemp(prefix="gtstub-fake-cuda-")) / "libcudart.so.13"
    sources = sorted(path for path in SOURCES.glob("*.c") if path.name != "sdfg.c")
    options = [*WARNINGS, *flags, "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]
    linking = [f"-Wl,-soname,{output.name}", f"-Wl,--version-script={SOURCES / 'exports.map'}"]
    subprocess.run([c_compiler(), "-std=c11", "-O1", *options, *linking, "-o", output, *sources], check=True)
    return output


def sdfg_compiler(fake: Path) -> Sequence[str]:
    """The `command` of build_recording_library() for an SDFG that runs on the stand-in: tests/gpu/fake/sdfg.c."""
    return (
        c_compiler(),
        f'-DGPU_SDFG="{SOURCES / "sdfg.c"}"',
        f"-I{SOURCES}",
        *("-Wl,--no-as-needed", str(fake), f"-Wl,-rpath,{fake.parent}"),
    )


class FakeCuda:
    """The stand-in in this process, which must not have loaded another CUDA runtime."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        self._library.fake_cuda_log.restype = self._library.fake_cuda_ran.restype = ctypes.c_char_p
        self._library.fake_cuda_fail.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
        self._library.fake_cuda_stream_number.argtypes = (ctypes.c_void_p,)

    # --- Control ------------------------------------------------------------------------------------------------------

    def log(self) -> list[str]:
        """The calls since `clear`, in order."""
        return self._lines(self._library.fake_cuda_log())

    def ran(self) -> list[str]:
        """The work that has run since `clear`, in order."""
        return self._lines(self._library.fake_cuda_ran())

    def clear(self) -> None:
        self._library.fake_cuda_clear()

    def fail(self, function: str, error: int, *, after: int = 0) -> None:
        """After `after` calls, the function (or the kernel of this name) returns an error; 0 lets it work again."""
        self._library.fake_cuda_fail(function.encode(), after, error)

    def recover(self) -> None:
        """Forgets all failures and a sticky error."""
        self._library.fake_cuda_recover()

    def devices(self, count: int) -> None:
        self._library.fake_cuda_devices(count)

    def stream_number(self, stream: int | None) -> int:
        return int(self._library.fake_cuda_stream_number(stream))

    def allocations(self, kind: int = DEVICE) -> int:
        """Those that were not freed."""
        return int(self._library.fake_cuda_allocations(kind))

    # --- CUDA ---------------------------------------------------------------------------------------------------------

    def call(self, function: str, *arguments: Any) -> int:
        """A function of CUDA's; returns its error. Addresses and sizes are passed as ctypes objects."""
        return int(self._library[function](*arguments))

    def stream(self, flags: int = 0) -> int:
        """A new stream; flag 1 makes it independent of the default stream."""
        stream = ctypes.c_void_p()
        self._check(self.call("cudaStreamCreateWithFlags", ctypes.byref(stream), ctypes.c_uint(flags)))
        return stream.value or 0

    def synchronize(self, stream: int = 0) -> None:
        self._check(self.call("cudaStreamSynchronize", ctypes.c_void_p(stream)))

    def malloc(self, size: int, function: str = "cudaMalloc") -> int:
        """The address of `size` bytes that this function has allocated."""
        pointer = ctypes.c_void_p()
        flags = (ctypes.c_uint(0),) if function in ("cudaHostAlloc", "cudaMallocManaged") else ()
        self._check(self.call(function, ctypes.byref(pointer), ctypes.c_size_t(size), *flags))
        return pointer.value or 0

    def copy(self, to: int, source: int, size: int) -> None:
        """Copies bytes between host and device, and waits."""
        addresses = ctypes.c_void_p(to), ctypes.c_void_p(source)
        self._check(self.call("cudaMemcpy", *addresses, ctypes.c_size_t(size), ctypes.c_int(4)))

    @staticmethod
    def _check(error: int) -> None:
        assert error == 0, f"error {error}"

    @staticmethod
    def _lines(text: bytes | None) -> list[str]:
        return (text or b"").decode().splitlines()


class DeviceArray:
    """A copy of an array in memory of the device, which is never freed; libraries read its interface."""

    def __init__(self, fake: FakeCuda, values: NDArray[Any], function: str = "cudaMalloc") -> None:
        self._fake = fake
        self._values = np.ascontiguousarray(values)
        self.address = fake.malloc(max(1, values.nbytes), function)
        fake.copy(self.address, self._values.ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def get(self) -> NDArray[Any]:
        """A copy on the host."""
        values = np.empty_like(self._values)
        self._fake.copy(values.ctypes.data, self.address, values.nbytes)
        return values
