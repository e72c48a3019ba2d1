"""Programs of DaCe itself on the GPU, with a callback on the host."""

from collections.abc import Callable

import dace
import numpy as np

import gtstub
from tests.gpu.device import arrays, programs

pytestmark = programs.needs_gpu

N = dace.symbol("N")
GPU = dace.StorageType.GPU_Global
KERNEL = dace.ScheduleType.GPU_Device

SEEN: list[np.ndarray] = []


def in_python(function: Callable[..., None]) -> Callable[..., None]:
    """DaCe calls a function back that has a decorator which it does not know."""
    return function


@in_python
def see(values: np.ndarray) -> None:
    SEEN.append(values.copy())


@gtstub.program
@dace.program
def add(a: dace.float64[N] @ GPU, b: dace.float64[N] @ GPU, factor: dace.float64):
    for i in dace.map[0:N] @ KERNEL:
        b[i] = b[i] + a[i] * factor


@gtstub.program
@dace.program
def observed(a: dace.float64[N] @ GPU, host: dace.float64[N]):
    for i in dace.map[0:N] @ KERNEL:
        a[i] = a[i] + 1
    host[:] = a
    see(host)


def test_a_program_runs_on_the_stream_and_waits(gpu: arrays.Gpu) -> None:
    stream = gpu.stream()
    a, b = gpu.array(np.arange(100.0)), gpu.array(np.zeros(100))
    with gtstub.stream(stream):
        add(a, b, 2.0)
        assert gpu.is_idle(stream)
    if gpu.runs_kernels:
        assert gpu.values(b).tolist() == (2 * np.arange(100.0)).tolist()


def test_a_callback_sees_what_was_copied_to_the_host(gpu: arrays.Gpu) -> None:
    a, host = gpu.array(np.arange(10.0)), np.zeros(10)
    observed(a, host)
    (seen,) = SEEN
    assert seen.shape == (10,)
    if gpu.runs_kernels:
        assert seen.tolist() == (np.arange(10.0) + 1).tolist()
