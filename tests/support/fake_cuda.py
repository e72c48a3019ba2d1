"""
The stand-in for the CUDA runtime (tests/gpu/fake/control.h): builds it, loads it, and tells what was called.

A process uses it instead of libcudart.so.13 if it loads it before any other library that needs one, so it belongs in a
process of its own:

    fake = FakeCuda(Path(sys.argv[1]))  # what build() has returned
    ...  # load and call programs for a GPU
    assert fake.log() == ["cudaLaunchKernel first_kernel stream=0"]
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import shutil
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
    folder = tempfile.mkdtemp(prefix="gtstub-fake-cuda-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    output = Path(folder) / "libcudart.so.13"
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


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class PointerAttributes(ctypes.Structure):
    """struct cudaPointerAttributes."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("devicePointer", ctypes.c_void_p),
        ("hostPointer", ctypes.c_void_p),
        ("reserved", ctypes.c_long * 8),
    )


class FakeCuda:
    """The stand-in in this process, which must not have loaded another CUDA runtime."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        self._kept: list[Any] = []
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
        """A function of CUDA's; returns its error. An int is passed with 64 bits, which every parameter accepts."""
        converted = (ctypes.c_uint64(each) if isinstance(each, int) else each for each in arguments)
        return int(self._library[function](*converted))

    def kernel(self, name: str) -> int:
        """Registers a kernel, as a library does that nvcc has compiled; returns the address of its host function."""
        function = ctypes.create_string_buffer(1)
        self._kept.append(function)
        register = self._library["__cudaRegisterFunction"]
        register.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        register(None, ctypes.addressof(function), None, name.encode(), -1, None, None, None, None, None)
        return ctypes.addressof(function)

    def launch(self, kernel: int, stream: int = 0) -> int:
        """Launches a kernel of `kernel` with one block; returns the error."""
        sizes = _Dim3(1, 1, 1), _Dim3(32, 1, 1)
        return self.call("cudaLaunchKernel", kernel, *sizes, None, 0, stream)

    def event(self, flags: int = 0) -> int:
        event = ctypes.c_void_p()
        self._check(self.call("cudaEventCreateWithFlags", ctypes.byref(event), flags))
        return event.value or 0

    def stream(self, flags: int = 0) -> int:
        """A new stream; flag 1 makes it independent of the default stream."""
        stream = ctypes.c_void_p()
        self._check(self.call("cudaStreamCreateWithFlags", ctypes.byref(stream), flags))
        return stream.value or 0

    def synchronize(self, stream: int = 0) -> None:
        self._check(self.call("cudaStreamSynchronize", stream))

    def malloc(self, size: int, function: str = "cudaMalloc") -> int:
        """The address of `size` bytes that this function has allocated."""
        pointer = ctypes.c_void_p()
        flags = (0,) if function in ("cudaHostAlloc", "cudaMallocManaged") else ()
        self._check(self.call(function, ctypes.byref(pointer), size, *flags))
        return pointer.value or 0

    def attributes(self, address: int) -> PointerAttributes:
        """What cudaPointerGetAttributes() says about an address."""
        found = PointerAttributes()
        self._check(self.call("cudaPointerGetAttributes", ctypes.byref(found), address))
        return found

    def copy(self, to: int, source: int, size: int) -> None:
        """Copies bytes between host and device, and waits."""
        self._check(self.call("cudaMemcpy", to, source, size, 4))

    @staticmethod
    def _check(error: int) -> None:
        assert error == 0, f"error {error}"

    @staticmethod
    def _lines(text: bytes | None) -> list[str]:
        return (text or b"").decode().splitlines()


class DeviceArray:
    """A copy of a contiguous array in memory of the device, which is never freed; libraries read its interface."""

    def __init__(self, fake: FakeCuda, values: NDArray[Any], function: str = "cudaMalloc") -> None:
        self._fake = fake
        assert values.flags.forc
        self._values = values
        self.address = fake.malloc(max(1, values.nbytes), function)
        fake.copy(self.address, values.ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.address, False),
            "strides": values.strides,
            "version": 3,
        }

    def get(self) -> NDArray[Any]:
        """A copy on the host."""
        values = np.empty_like(self._values)
        self._fake.copy(values.ctypes.data, self.address, values.nbytes)
        return values
