"""Calls put all their work on one stream, which the host chooses, and wait for nothing."""

from __future__ import annotations

import ctypes
import gc
import inspect
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.programs.compiled import Builder, CompiledProgram, Interface, StaticScalar
from tests.gpu.conftest import bind, launches
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.graphs import Captured
from tests.support.hosting import EDGES, LEVELS, Bound

WAITS = ("Synchronize", "Query", "cudaMemcpy ")


class Stream:
    """A stream of a library that follows the protocol."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.address)


class OlderStream:
    """A stream as cupy's before version 14."""

    def __init__(self, address: int) -> None:
        self.ptr = address


def streams_of_a_call(fake: FakeCuda, bound: Bound, vn: Any) -> set[str]:
    """The streams in the log of one call."""
    fake.clear()
    bound.program(vn, vn)
    return {line.partition("stream=")[2].split()[0] for line in fake.log() if "stream=" in line}


def test_a_call_uses_the_default_stream_and_waits_for_nothing(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    bound.program(vn, vn)  # recognises the field
    fake.clear()
    bound.program(vn, vn)
    assert fake.log() == [
        "cudaGetLastError",
        "cudaMallocAsync bytes=1000 stream=0",
        "cudaLaunchKernel first_kernel stream=0",
        "cudaLaunchKernel second_kernel stream=0",
        "cudaFreeAsync stream=0",
        "cudaGetLastError",
    ]
    assert fake.ran() == []


@pytest.mark.parametrize("made", [int, Stream, OlderStream])
def test_all_work_of_a_call_is_on_the_stream_of_the_program(
    made: Callable[[int], Any], fake: FakeCuda, bound: Bound, vn: Any
) -> None:
    address = fake.stream(1)
    stream = made(address)
    bound.program.stream = stream
    assert bound.program.stream is stream
    assert streams_of_a_call(fake, bound, vn) == {str(fake.stream_number(address))}
    bound.program.stream = None
    assert streams_of_a_call(fake, bound, vn) == {"0"}


def test_a_stream_that_has_not_changed_costs_nothing(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    stream = fake.stream(1)
    bound.program.stream = stream
    bound.program(vn, vn)
    fake.clear()
    bound.program.stream = stream
    assert fake.log() == []


def test_calls_on_a_new_stream_wait_on_the_gpu_for_those_on_the_old_one(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    first, second = fake.stream(1), fake.stream(1)
    bound.program.stream = first
    bound.program(vn, vn)
    fake.synchronize(first)
    bound.program(vn, vn)
    fake.clear()
    bound.program.stream = second
    bound.program(vn, vn)
    assert fake.ran() == []
    fake.synchronize(second)
    kernels = [line for line in fake.ran() if "kernel" in line]
    a, b = fake.stream_number(first), fake.stream_number(second)
    assert kernels == [f"{kernel} stream={n}" for n in (a, b) for kernel in ("first_kernel", "second_kernel")]


def test_a_stream_that_cannot_wait_is_refused(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    stream = fake.stream(1)
    bound.program(vn, vn)
    fake.fail("cudaEventCreateWithFlags", 2)
    with pytest.raises(RuntimeError) as caught:
        bound.program.stream = stream
    assert str(caught.value) == (
        f"Program 'diffusion' cannot wait on the stream {stream:#x} for its calls on the one before: error 2"
        " (cudaErrorMemoryAllocation: out of memory)."
    )
    assert streams_of_a_call(fake, bound, vn) == {"0"}


def test_a_destroyed_stream_can_be_replaced(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    first, second = fake.stream(1), fake.stream(1)
    bound.program.stream = first
    bound.program(vn, vn)
    fake.call("cudaStreamDestroy", ctypes.c_void_p(first))
    bound.program.stream = second
    assert streams_of_a_call(fake, bound, vn) == {str(fake.stream_number(second))}


def test_the_first_call_on_a_stream_waits_for_what_was_set_up_on_the_default_one(
    fake: FakeCuda, bound: Bound, vn: Any
) -> None:
    stream = fake.stream(1)
    bound.program.stream = stream
    bound.program(vn, vn)
    log = fake.log()
    waits = [i for i, line in enumerate(log) if line.startswith("cudaStreamWaitEvent")]
    (recorded,) = (i for i, line in enumerate(log) if line.startswith("cudaEventRecord"))
    (first,) = (i for i, line in enumerate(log) if "first_kernel" in line)
    assert recorded < waits[0] < first
    assert log[recorded].endswith("stream=0")


def test_programs_without_a_stream_of_their_own_follow_the_process(
    fake: FakeCuda, bound: Bound, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    own, current = fake.stream(1), Stream(fake.stream(1))
    other = bind("advection", tmp_path / "advection", toolchain)
    bound.program(vn, vn)
    other.program(vn, vn)
    other.program.stream = own
    with gtstub.stream(current):
        assert bound.program.stream is current
        assert other.program.stream == own
        number = fake.stream_number(current.address)
        assert streams_of_a_call(fake, bound, vn) == {str(number)}
        assert streams_of_a_call(fake, other, vn) == {str(fake.stream_number(own))}
        later = bound.load()
        fake.clear()
        later(vn, vn)
        assert launches(fake) == [f"first_kernel stream={number}", f"second_kernel stream={number}"]
        other.program.stream = "current"
        assert streams_of_a_call(fake, other, vn) == {str(number)}
    assert bound.program.stream is None
    assert streams_of_a_call(fake, other, vn) == {"0"}


def test_threads_that_set_the_stream_agree_with_c(fake: FakeCuda) -> None:
    """The object that is kept must be that of the stream that programs use."""
    streams = [Stream(fake.stream(1)) for _ in range(2)]
    runtime = ctypes.CDLL(_host.__file__)
    runtime.gts_stream.restype = ctypes.c_void_p

    def set_often(stream: Stream) -> None:
        for _ in range(200):
            _host.set_stream(stream)

    for _ in range(50):
        with ThreadPoolExecutor() as pool:
            list(pool.map(set_often, streams))
        assert _host.get_stream().address == runtime.gts_stream(None)


def test_blocks_nest(fake: FakeCuda) -> None:
    outer, inner = fake.stream(1), fake.stream(1)
    with gtstub.stream(outer):
        with gtstub.stream(inner):
            assert _host.get_stream() == inner
        with pytest.raises(KeyError), gtstub.stream(inner):
            raise KeyError
        assert _host.get_stream() == outer
    assert _host.get_stream() is None


def test_a_stream_lives_as_long_as_a_program_has_it(fake: FakeCuda, bound: Bound) -> None:
    stream = Stream(fake.stream(1))
    weak = weakref.ref(stream)
    bound.program.stream = stream
    del stream
    gc.collect()
    assert weak() is not None
    bound.program.stream = "current"
    gc.collect()
    assert weak() is None


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        ("default", TypeError, "not 'str'."),
        (True, TypeError, "not 'bool'."),
        (1.0, TypeError, "not 'float'."),
        (2**70, ValueError, f"A stream must be an address, but is {2**70}."),
        (-1, ValueError, "A stream must be an address, but is -1."),
    ],
)
def test_other_objects_are_no_streams(stream: Any, error: type[Exception], message: str, bound: Bound) -> None:
    for set_stream in (lambda: setattr(bound.program, "stream", stream), lambda: _host.set_stream(stream)):
        with pytest.raises(error) as caught:
            set_stream()
        beginning = "A stream must be None, 'current', an address, or an object with '__cuda_stream__', "
        assert str(caught.value) == (beginning + message if message.startswith("not") else message)


class Meddling:
    """An array that does something when a program reads it."""

    def __init__(self, array: Any, deed: Callable[[], Any]) -> None:
        self._array, self._deed = array, deed

    @property
    def __cuda_array_interface__(self) -> Any:
        self._deed()
        return self._array.__cuda_array_interface__


def test_an_argument_cannot_set_a_stream_which_would_wait_for_the_call(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    array, stream = DeviceArray(fake, np.zeros((EDGES, LEVELS))), fake.stream(1)
    deeds: dict[str, Callable[[], Any]] = {
        "The stream of program 'diffusion' cannot be set within a call of it.": (
            lambda: setattr(bound.program, "stream", stream)
        ),
        "The stream of all programs cannot be set within a call of program 'diffusion'.": (
            lambda: _host.set_stream(stream)
        ),
    }
    for message, deed in deeds.items():
        with pytest.raises(RuntimeError) as caught:
            bound.program(Meddling(array, deed), vn)
        assert str(caught.value) == message
    bound.program(array, vn)


def test_a_program_that_waits_ends_the_capture_of_a_host(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    bound.recorder.behaviour.waits = True
    refused = pytest.raises(RuntimeError, match=r"error 900 .* while program 'diffusion' ran")
    with pytest.raises(AssertionError, match="cudaStreamEndCapture"), Captured(), refused:
        bound.program(vn, vn)
    assert any(line.startswith("cudaStreamEndCapture") and line.endswith("-> 901") for line in fake.log())
    bound.recorder.behaviour.waits = False
    bound.program(vn, vn)


def test_an_object_must_follow_the_protocol(bound: Bound) -> None:
    stream = Stream(0)
    stream.__cuda_stream__ = lambda: 5  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(TypeError) as caught:
        bound.program.stream = stream
    assert str(caught.value) == "'__cuda_stream__' of a stream must return (0, address), but returned 5."


def test_a_stream_that_was_destroyed_is_refused_and_the_old_one_stays(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    good, destroyed = fake.stream(1), fake.stream(1)
    assert fake.call("cudaStreamDestroy", ctypes.c_void_p(destroyed)) == 0
    bound.program.stream = good
    bound.program(vn, vn)
    message = (
        f"Program 'diffusion' cannot use the stream {destroyed:#x}: error 400 (cudaErrorInvalidResourceHandle: "
        "invalid resource handle)."
    )
    with pytest.raises(ValueError) as caught:
        bound.program.stream = destroyed
    assert str(caught.value) == message
    assert bound.program.stream == good
    bound.program.stream = "current"
    with pytest.raises(ValueError) as caught, gtstub.stream(destroyed):
        pytest.fail("the block was entered")
    assert str(caught.value) == message
    assert streams_of_a_call(fake, bound, vn) == {"0"}


def test_the_stream_attribute_cannot_be_deleted(bound: Bound) -> None:
    with pytest.raises(AttributeError) as caught:
        del bound.program.stream
    assert str(caught.value) == "Attribute 'stream' cannot be deleted; set it to 'current'."


def test_a_program_on_the_cpu_has_no_stream(tmp_path: Path, toolchain: Toolchain) -> None:
    on_cpu = Bound(tmp_path, toolchain)
    for stream in (None, 5, "current"):
        with pytest.raises(ValueError) as caught:
            on_cpu.program.stream = stream
        assert str(caught.value) == f"Program '{on_cpu.program.name}' runs on the CPU and has no stream."


def test_a_zero_dimensional_field_is_read_behind_the_calls_of_its_program(
    fake: FakeCuda, vn: Any, tmp_path: Path, toolchain: Toolchain
) -> None:
    """Its own library waits for another stream."""

    class Factor:
        __cuda_array_interface__: ClassVar = {"shape": (), "typestr": "<f8", "data": (64, False), "version": 3}

        def item(self) -> float:
            ran.append(fake.ran())
            return 0.5

    ran: list[list[str]] = []
    bound = bind("diffusion", tmp_path, toolchain, has_factor=True)
    stream = fake.stream(1)
    bound.program.stream = stream
    number = fake.stream_number(stream)
    bound.program(vn, vn, 0.5)
    fake.clear()
    bound.program(vn, vn, 0.5)
    assert fake.ran() == []
    bound.program(vn, vn, Factor())
    assert bound.last()["factor"] == 0.5
    bound.program(vn, vn, np.array(0.25))
    assert bound.last()["factor"] == 0.25
    kernels = [f"first_kernel stream={number}", f"second_kernel stream={number}"]
    assert [line for line in ran[0] if "kernel" in line] == 2 * kernels  # of both calls before
    assert [line for line in fake.log() if "Synchronize" in line] == [f"cudaStreamSynchronize stream={number}"]


@pytest.fixture
def variants(tmp_path: Path, toolchain: Toolchain) -> dict[int, Bound]:
    """What `compiled` calls for the static arguments 1 and 2."""
    return {n: bind("p", tmp_path / str(n), toolchain, static={"n": n}) for n in (1, 2)}


@pytest.fixture
def compiled(fake: FakeCuda, variants: dict[int, Bound]) -> CompiledProgram:
    """A program with two variants, none of which is loaded."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("vn", "out", "n")]
    statics = (StaticScalar("n", "n", "int32"),)
    interface = Interface("p", inspect.Signature(parameters), "", {}, False, statics, ({},))
    builds: dict[int, Future[Any]] = {n: Future() for n in variants}
    builder = Builder(
        lambda _, value: value, lambda static, _: builds[static["n"]], lambda n: variants[n].program, lambda: None
    )
    program = CompiledProgram.make(interface, builder)
    program.compile(n=[1, 2])
    for n, build in builds.items():
        build.set_result(n)
    return program


def test_the_variants_of_a_compiled_program_have_one_stream(
    fake: FakeCuda, vn: Any, compiled: CompiledProgram, variants: dict[int, Bound]
) -> None:
    first, second = fake.stream(1), fake.stream(1)
    assert compiled.stream is None
    compiled.stream = first
    assert compiled.stream == first
    compiled(vn, vn, 1)
    assert variants[1].program.stream == first
    compiled.stream = second
    compiled(vn, vn, 2)
    assert compiled.stream == second
    assert [each.program.stream for each in variants.values()] == [second, second]


def test_a_compiled_program_refuses_what_is_no_stream_before_a_variant_is_loaded(
    vn: Any, compiled: CompiledProgram
) -> None:
    with pytest.raises(TypeError) as caught:
        compiled.stream = "default"
    assert str(caught.value) == (
        "A stream must be None, 'current', an address, or an object with '__cuda_stream__', not 'str'."
    )
    assert compiled.stream is None
    compiled(vn, vn, 1)


def test_no_variant_has_a_stream_that_another_has_refused(
    fake: FakeCuda, vn: Any, compiled: CompiledProgram, variants: dict[int, Bound]
) -> None:
    array, stream = DeviceArray(fake, np.zeros((EDGES, LEVELS))), fake.stream(1)
    for n in variants:
        compiled(vn, vn, n)
    with pytest.raises(RuntimeError) as caught:
        compiled(vn, Meddling(array, lambda: setattr(compiled, "stream", stream)), 2)
    assert str(caught.value) == "The stream of program 'p' cannot be set within a call of it."
    assert [each.program.stream for each in variants.values()] == [None, None]
    with gtstub.stream(stream):  # they follow it, as before
        assert compiled.stream == stream
        assert [each.program.stream for each in variants.values()] == [stream, stream]
