"""What the GPU reports is an error of the call that saw it, with the name of its program."""

from __future__ import annotations

import ctypes
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Workspace
from tests.gpu.conftest import bind, launches
from tests.support.fake_cuda import DeviceArray, FakeCuda, build
from tests.support.gt4py_programs import aligned_workspace
from tests.support.hosting import EDGES, LEVELS, Bound, edge_field, run_script

OUT_OF_MEMORY = "error 2 (cudaErrorMemoryAllocation: out of memory)"
ILLEGAL_ADDRESS = "error 700 (cudaErrorIllegalAddress: an illegal memory access was encountered)"


def refusal(program: Any, *arguments: Any) -> str:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        program(*arguments)
    return f"{type(caught.value).__name__}: {caught.value}"


def run(script: str, folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """The lines that a script prints in a process of its own, because the runtime keeps an error that a GPU keeps."""
    beginning = """
        import os
        import sys
        from pathlib import Path
        import numpy as np
        from gtstub.entries.toolchain import compiler
        from tests.gpu.conftest import bind
        from tests.support.fake_cuda import DeviceArray, FakeCuda
        from tests.support.hosting import EDGES, LEVELS, edge_field
        fake = FakeCuda(Path(sys.argv[1]))
        folder = Path(sys.argv[2])
        folder.mkdir(exist_ok=True)
        toolchain = compiler.find(Path(os.environ["GTSTUB_CACHE_DIR"]))  # CMake answers one of these processes
        programs = [bind(name, folder / name, toolchain).load() for name in ("diffusion", "advection")]
        vn = edge_field(DeviceArray(fake, np.zeros((EDGES, LEVELS))))
        def call(program):
            try:
                program(vn, vn)
                print("no error")
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
    """
    text = textwrap.dedent(beginning) + textwrap.dedent(script)
    told = run_script(text, build(), folder, environment=(environment or {}).items())
    return [line for line in told.splitlines() if not line.startswith("WARNING: ")]  # of the SDFG


def test_an_error_of_a_call_is_raised_and_the_next_call_works(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    fake.fail("cudaMallocAsync", 2)
    assert refusal(bound.program, vn, vn) == (
        f"RuntimeError: The GPU reported {OUT_OF_MEMORY} while program 'diffusion' ran."
    )
    fake.fail("cudaMallocAsync", 0)
    bound.program(vn, vn)


def test_a_machine_without_a_driver(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    fake.fail("cudaGetDeviceCount", 35)
    fake.clear()
    with pytest.raises(RuntimeError) as caught:
        bound.load()
    message = (
        "Program 'diffusion' finds no GPU: error 35 (cudaErrorInsufficientDriver: CUDA driver version is"
        " insufficient for CUDA runtime version)."
    )
    assert str(caught.value) == message
    assert not [line for line in fake.log() if line.startswith(("cudaMalloc", "cudaSetDevice"))]
    fake.recover()
    bound.load()(vn, vn)


def test_a_machine_without_a_gpu(fake: FakeCuda, bound: Bound) -> None:
    fake.devices(0)
    with pytest.raises(RuntimeError) as caught:
        bound.load()
    assert str(caught.value) == (
        "Program 'diffusion' finds no GPU: error 100 (cudaErrorNoDevice: no CUDA-capable device is detected)."
    )


@pytest.fixture
def select(fake: FakeCuda) -> Iterator[Callable[[int], None]]:
    """Makes a GPU of two the current one of this thread, until the test ends."""

    def select(device: int) -> None:
        assert fake.call("cudaSetDevice", ctypes.c_int(device)) == 0

    fake.devices(2)
    yield select
    select(0)


ANOTHER_IS_CURRENT = (
    "RuntimeError: Program 'diffusion' runs on GPU 0, but GPU 1 is current in this thread. Set CUDA_VISIBLE_DEVICES so"
    " that each process sees only its own GPU."
)


def test_another_gpu_is_current(fake: FakeCuda, bound: Bound, vn: Any, select: Callable[[int], None]) -> None:
    """DaCe would select GPU 0, for the host too, and use the arrays of the other one."""
    select(1)
    assert refusal(bound.load) == ANOTHER_IS_CURRENT
    assert not [line for line in fake.log() if line.startswith("cudaSetDevice device=0")]
    select(0)
    bound.load()(vn, vn)


def test_another_gpu_is_current_where_something_is_new(
    fake: FakeCuda, bound: Bound, vn: Any, select: Callable[[int], None]
) -> None:
    """Work on the default stream would run on that GPU."""
    bound.program(vn, vn)
    stream = fake.stream(1)
    select(1)
    there = edge_field(DeviceArray(fake, np.zeros((EDGES, LEVELS))))
    fake.clear()
    assert refusal(bound.program, there, there) == ANOTHER_IS_CURRENT
    assert refusal(setattr, bound.program, "stream", stream) == ANOTHER_IS_CURRENT
    assert launches(fake) == []
    assert bound.program.stream is None
    select(0)
    bound.program(vn, vn)


def test_a_call_that_fails_says_that_another_gpu_is_current(
    fake: FakeCuda, bound: Bound, vn: Any, select: Callable[[int], None]
) -> None:
    bound.program.stream = fake.stream(1)
    bound.program(vn, vn)
    bound.program(vn, vn)  # recognises the field
    select(1)
    assert refusal(bound.program, vn, vn) == ANOTHER_IS_CURRENT
    select(0)
    bound.program(vn, vn)


def test_too_little_memory_for_the_handle(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    fake.fail("cudaMalloc", 2)
    with pytest.raises(RuntimeError) as caught:
        bound.load()
    assert str(caught.value) == (
        f"The SDFG of program 'diffusion' could not be initialised: the GPU reported {OUT_OF_MEMORY}."
    )
    fake.recover()
    bound.load()(vn, vn)


def test_a_kernel_that_failed_ends_all_programs_and_the_first_is_named(tmp_path: Path) -> None:
    found = run(
        """
        diffusion, advection = programs
        fake.fail("second_kernel", 700)
        call(diffusion)
        fake.call("cudaStreamSynchronize", None)
        call(advection)
        call(diffusion)
        call(advection)
        """,
        tmp_path,
    )
    later = f"cannot run: the GPU reports {ILLEGAL_ADDRESS} since a call of program 'advection'. Start a new process."
    assert found == [
        "no error",
        f"RuntimeError: The GPU reported {ILLEGAL_ADDRESS} while program 'advection' ran. The kernel that failed may be"
        " an earlier program's: GTSTUB_GPU_SYNC=1 names that program.",
        f"RuntimeError: Program 'diffusion' {later}",
        f"RuntimeError: Program 'advection' {later}",
    ]


def test_synchronising_names_the_program_whose_kernel_failed(tmp_path: Path) -> None:
    script = """
        diffusion, advection = programs
        call(diffusion)
        fake.fail("second_kernel", 700)
        call(diffusion)
        call(advection)
    """
    assert run(script, tmp_path, {"GTSTUB_GPU_SYNC": "1"}) == [
        "no error",
        f"RuntimeError: The GPU reported {ILLEGAL_ADDRESS} while program 'diffusion' ran.",
        f"RuntimeError: Program 'advection' cannot run: the GPU reports {ILLEGAL_ADDRESS} since a call of program"
        " 'diffusion'. Start a new process.",
    ]
    assert run(script, tmp_path / "without", {"GTSTUB_GPU_SYNC": "0"})[1] == "no error"


def test_a_stream_that_was_destroyed_is_not_taken_for_a_gpu_that_is_lost(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    stream = fake.stream(1)
    bound.program.stream = stream
    bound.program(vn, vn)
    fake.call("cudaStreamDestroy", ctypes.c_void_p(stream))
    for _ in range(2):
        assert refusal(bound.program, vn, vn) == (
            "RuntimeError: The GPU reported error 400 (cudaErrorInvalidResourceHandle: invalid resource handle) while"
            " program 'diffusion' ran."
        )
    bound.program.stream = None
    bound.program(vn, vn)


def test_an_error_that_the_sdfg_does_not_look_at_is_raised(tmp_path: Path) -> None:
    """gt4py's code waits in synchronous calls, and DaCe's copies some arrays, without looking at the result."""
    script = """
        waiting = bind("waiting", folder / "waiting", toolchain)
        call(waiting.program)
        waiting.recorder.behaviour.waits = True
        fake.fail("second_kernel", 700)
        call(waiting.program)
    """
    assert run(script, tmp_path) == [
        "no error",
        f"RuntimeError: The GPU reported {ILLEGAL_ADDRESS} while program 'waiting' ran. The kernel that failed may be"
        " an earlier program's: GTSTUB_GPU_SYNC=1 names that program.",
    ]


# --- Memory -----------------------------------------------------------------------------------------------------------


class Disguised:
    """Memory of the host that claims to be on a GPU."""

    def __init__(self, values: Any) -> None:
        self._values = values
        pointer = values.ctypes.data
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": "<f8",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


def test_memory_of_the_host_is_refused(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    values = np.zeros((EDGES, LEVELS))
    fake.clear()
    assert refusal(bound.program, Disguised(values), vn) == (
        "ValueError: Argument 'vn' of program 'diffusion' must be in the memory of a GPU, but"
        f" {values.ctypes.data:#x} is in the memory of the host."
    )
    assert refusal(bound.program, values, vn) == (
        "ValueError: Argument 'vn' of program 'diffusion' must be on device 'cuda', not on 'cpu'."
    )
    assert launches(fake) == []


def test_an_empty_array_may_have_any_address(fake: FakeCuda, bound: Bound) -> None:
    """Cupy's view a[n:] begins where the memory of `a` ends."""
    empty = np.zeros((EDGES, 0))
    bound.program(Disguised(empty), Disguised(empty))


@pytest.mark.parametrize("function", ["cudaMallocManaged", "cudaHostAlloc", "cudaMallocHost"])
def test_managed_and_pinned_memory_is_accepted(function: str, fake: FakeCuda, bound: Bound, vn: Any) -> None:
    values = DeviceArray(fake, np.zeros((EDGES, LEVELS)), function)
    fake.clear()
    bound.program(values, vn)
    assert len(launches(fake)) == 2


def test_memory_of_another_gpu_is_refused(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    fake.devices(2)
    assert fake.call("cudaSetDevice", ctypes.c_int(1)) == 0
    there = edge_field(DeviceArray(fake, np.zeros((EDGES, LEVELS))))
    assert fake.call("cudaSetDevice", ctypes.c_int(0)) == 0
    fake.clear()
    assert refusal(bound.program, there, vn) == (
        "ValueError: Argument 'vn' of program 'diffusion' is on GPU 1, but the program runs on GPU 0."
    )
    assert launches(fake) == []


def test_a_stream_of_another_gpu_is_refused(fake: FakeCuda, bound: Bound) -> None:
    fake.devices(2)
    assert fake.call("cudaSetDevice", ctypes.c_int(1)) == 0
    stream = fake.stream(1)
    assert fake.call("cudaSetDevice", ctypes.c_int(0)) == 0
    with pytest.raises(ValueError) as caught:
        bound.program.stream = stream
    assert str(caught.value) == (
        f"Program 'diffusion' cannot use the stream {stream:#x}: it is of GPU 1, but the program runs on GPU 0."
    )


def test_a_workspace_is_memory_of_the_gpu(fake: FakeCuda, tmp_path: Path, toolchain: Toolchain, vn: Any) -> None:
    bound = bind("diffusion", tmp_path, toolchain, Workspace("GPU_Global", "cuda"))
    bound.recorder.behaviour.workspace_bytes = 64
    memory = DeviceArray(fake, np.zeros(1024, np.uint8))
    bound.program.set_workspace("GPU_Global", memory)
    bound.program(vn, vn)
    on_host = Disguised(aligned_workspace(1024).view(np.float64))
    (address, _) = on_host.__cuda_array_interface__["data"]
    assert refusal(bound.program.set_workspace, "GPU_Global", on_host) == (
        "ValueError: The workspace of program 'diffusion' in 'GPU_Global' must be in the memory of a GPU, but"
        f" {address:#x} is in the memory of the host."
    )
    bound.program(vn, vn)
    installed = [each.memory for each in bound.recorder.records() if each.function == "workspace_install"]
    assert set(installed) == {memory.address}
