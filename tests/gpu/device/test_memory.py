"""Arrays of CuPy, in each kind of memory, and what a program refuses of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs
from tests.support import gpu_programs
from tests.support.hosting import Field

pytestmark = programs.needs_gpu


class Disguised:
    """Memory of the host that claims to be on a GPU."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (values.ctypes.data, False),
            "strides": values.strides,
            "version": 3,
        }


@pytest.fixture
def scale(gpu: arrays.Gpu, entries: dict[str, Entry]) -> programs.Call:
    """scale_k, on a stream of its own."""
    return programs.prepare(gpu, entries["scale_k"], stream=gpu.stream(), called=True)


def with_field(call: programs.Call, array: Any) -> programs.Call:
    """The same call with another array for the field that is read."""
    return programs.Call(call.program, {**call.arguments, "field": Field(call.arguments["field"]._domain, array)})


def refusal(call: programs.Call) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


LEVELS = gpu_programs.SIZES["K"]


@pytest.mark.parametrize("kind", ["device", "managed", "pinned"])
def test_each_kind_of_memory_is_accepted(gpu: arrays.Gpu, scale: programs.Call, kind: str) -> None:
    values = np.arange(float(LEVELS))
    call = with_field(scale, gpu.array(values, kind))
    call()
    gpu.wait(scale.program.stream)
    if gpu.runs_kernels:
        found = gpu.values(scale.arguments["scaled_field"]._ndarray)
        np.testing.assert_array_equal(found, scale.arguments["factor"] * values)


def test_memory_of_the_host_is_refused(gpu: arrays.Gpu, scale: programs.Call) -> None:
    values = np.ones(LEVELS)
    assert refusal(with_field(scale, Disguised(values))) == (
        "ValueError: Argument 'field' of program 'scale_k' must be in the memory of a GPU, but"
        f" {values.ctypes.data:#x} is in the memory of the host."
    )
    assert refusal(with_field(scale, values)) == (
        "ValueError: Argument 'field' of program 'scale_k' must be on device 'cuda', not on 'cpu'."
    )
    assert gpu.is_idle(scale.program.stream)


def test_another_dtype_and_another_shape_are_refused(gpu: arrays.Gpu, scale: programs.Call) -> None:
    refusals = [
        refusal(with_field(scale, gpu.array(values)))
        for values in (np.ones(LEVELS, np.float32), np.ones(LEVELS - 1), np.ones((LEVELS, 1)))
    ]
    assert all(each.startswith(("TypeError: Argument 'field' ", "ValueError: Argument 'field' ")) for each in refusals)
    assert len(set(refusals)) == len(refusals)
    assert gpu.is_idle(scale.program.stream)
    scale()
    gpu.wait(scale.program.stream)


def test_memory_that_was_freed_and_allocated_again_is_used(gpu: arrays.Gpu, scale: programs.Call) -> None:
    """CuPy's pool gives the same address again: what is known of an address must not outlive its array."""
    for factor in range(1, 4):
        array = gpu.array(np.full(LEVELS, float(factor)))
        with_field(scale, array)()
        gpu.wait(scale.program.stream)
        if gpu.runs_kernels:
            found = gpu.values(scale.arguments["scaled_field"]._ndarray)
            np.testing.assert_array_equal(found, scale.arguments["factor"] * np.full(LEVELS, float(factor)))
        del array
        assert refusal(with_field(scale, gpu.array(np.ones(LEVELS, np.int64)))).startswith("TypeError: ")
