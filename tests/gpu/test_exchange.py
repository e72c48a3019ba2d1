"""Arrays of other libraries: a call waits on the GPU for the stream that their work is on, when they are new."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.gpu.conftest import launches
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.graphs import Captured
from tests.support.hosting import EDGES, LEVELS, Bound, edge_field

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
LEGACY, PER_THREAD = 1, 2


class OnStream:
    """An array whose work is on a stream, as CuPy exports it."""

    def __init__(self, array: DeviceArray, stream: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream}


@pytest.fixture
def memory(fake: FakeCuda) -> DeviceArray:
    return DeviceArray(fake, np.zeros((EDGES, LEVELS)))


def kernels(fake: FakeCuda) -> list[str]:
    return [line for line in fake.ran() if "kernel" in line]


def orders(fake: FakeCuda) -> list[str]:
    """The events by which streams wait for each other."""
    return [line for line in fake.log() if line.startswith(("cudaEventRecord", "cudaStreamWaitEvent"))]


# --- __cuda_array_interface__ -----------------------------------------------------------------------------------------


def test_a_new_array_is_used_behind_the_work_on_its_stream(
    fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray
) -> None:
    bound.program(vn, vn)
    bound.program.stream = own = fake.stream(1)
    theirs = fake.stream(1)
    array = edge_field(OnStream(memory, theirs))
    bound.program(vn, vn)
    fake.synchronize(own)
    fake.launch(fake.kernel("_Z12their_kernelPd"), theirs)
    fake.clear()
    bound.program(array, vn)
    assert fake.ran() == []
    fake.synchronize(own)
    assert [line.split()[0] for line in kernels(fake)] == ["their_kernel", "first_kernel", "second_kernel"]
    bound.program(array, vn)
    fake.clear()
    bound.program(array, vn)  # is recognised
    assert orders(fake) == []
    assert len(launches(fake)) == 2


@pytest.mark.parametrize("stream", [None, LEGACY, 0])
def test_an_array_of_the_same_stream_needs_no_order(
    stream: int | None, fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray
) -> None:
    bound.program(edge_field(OnStream(memory, stream)), vn)
    own = fake.stream(1)
    bound.program.stream = own
    fake.clear()
    bound.program(edge_field(OnStream(memory, own)), vn)
    assert orders(fake) == []


def test_the_default_stream_is_waited_for(fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray) -> None:
    bound.program.stream = own = fake.stream(1)
    bound.program(vn, vn)
    fake.clear()
    bound.program(edge_field(OnStream(memory, LEGACY)), vn)
    assert [line.partition("stream=")[2] for line in orders(fake)] == ["0", str(fake.stream_number(own))]


def test_a_captured_call_does_not_wait_for_the_streams_of_its_arrays(
    fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray
) -> None:
    bound.program(vn, vn)
    theirs = fake.stream(1)
    fake.clear()
    with Captured() as graph:
        bound.program(edge_field(OnStream(memory, theirs)), vn)
    assert not [line for line in orders(fake) if line.endswith(f"stream={fake.stream_number(theirs)}")]
    graph()


def test_a_stream_of_an_array_that_was_destroyed(fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray) -> None:
    bound.program(vn, vn)
    theirs = fake.stream(1)
    fake.call("cudaStreamDestroy", ctypes.c_void_p(theirs))
    fake.clear()
    with pytest.raises(RuntimeError) as caught:
        bound.program(edge_field(OnStream(memory, theirs)), vn)
    assert str(caught.value) == (
        f"Program 'diffusion' cannot wait for the stream {theirs:#x} of an array: error 400"
        " (cudaErrorInvalidResourceHandle: invalid resource handle)."
    )
    assert launches(fake) == []
    bound.program(vn, vn)


@pytest.mark.parametrize("stream", ["default", 1.0, -1, 2**70])
def test_a_stream_of_an_array_must_be_an_address(stream: Any, bound: Bound, vn: Any, memory: DeviceArray) -> None:
    bound.program(vn, vn)
    with pytest.raises(TypeError) as caught:
        bound.program(edge_field(OnStream(memory, stream)), vn)
    assert str(caught.value) == (
        "Argument 'vn' of program 'diffusion' has a '__cuda_array_interface__' that gtstub cannot read."
    )


# --- DLPack -----------------------------------------------------------------------------------------------------------


class Tensor(ctypes.Structure):
    """DLManagedTensor, without what gtstub does not read."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Exporter:
    """An array that keeps what `__dlpack__` was called with; an older one does not know `max_version`."""

    def __init__(self, memory: DeviceArray, device: int, *, is_older: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self._device, self._is_older = device, is_older
        shape = (ctypes.c_int64 * 2)(EDGES, LEVELS)
        self._tensor = Tensor(memory.address, (device, 0), 2, 2, 64, 1, shape, None, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        if self._is_older and "max_version" in keywords:
            raise TypeError
        self.asked.append(keywords)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self._tensor), b"dltensor", None)


@pytest.mark.parametrize("device", [CUDA, CUDA_MANAGED])
def test_dlpack_is_told_the_stream_of_the_program(
    device: int, fake: FakeCuda, bound: Bound, vn: Any, memory: DeviceArray
) -> None:
    array = Exporter(memory, device)
    stream = fake.stream(1)
    for each in (None, PER_THREAD, stream):
        bound.program.stream = each
        bound.program(edge_field(array), vn)
    assert array.asked == [{"max_version": (1, 0), "stream": each} for each in (LEGACY, PER_THREAD, stream)]
    assert bound.last()["vn"] == memory.address


def test_dlpack_of_an_older_library_is_told_the_stream(bound: Bound, vn: Any, memory: DeviceArray) -> None:
    array = Exporter(memory, CUDA, is_older=True)
    bound.program(edge_field(array), vn)
    assert array.asked == [{"stream": LEGACY}]


def test_dlpack_orders_nothing_while_the_stream_is_captured(bound: Bound, vn: Any, memory: DeviceArray) -> None:
    array = Exporter(memory, CUDA)
    bound.program(vn, vn)
    with Captured():
        bound.program(edge_field(array), vn)
    assert array.asked == [{"max_version": (1, 0), "stream": -1}]


def test_dlpack_is_told_no_stream_for_an_array_on_the_cpu(bound: Bound, vn: Any, memory: DeviceArray) -> None:
    array = Exporter(memory, CPU)
    with pytest.raises(ValueError) as caught:
        bound.program(edge_field(array), vn)
    assert str(caught.value) == "Argument 'vn' of program 'diffusion' must be on device 'cuda', not on 'cpu'."
    assert array.asked == [{"max_version": (1, 0)}]
