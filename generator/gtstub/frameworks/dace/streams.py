"""
One stream for all that an SDFG does on a GPU: kernels, copies, memory of pools, and waiting.

gt4py lowers for DaCe's setting `max_concurrent_streams = -1`, with which DaCe writes the default stream into the code.
With 1, DaCe puts everything on `__state->gpu_context->streams[0]`, which `__dace_gpu_set_all_streams` sets, and waits
for it at the end of each state. Nothing needs to wait there: a copy to the host waits by itself, and the rest is
in order because it is on one stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dace
from dace import config, data, dtypes, nodes
from dace.properties import CodeBlock

STREAM = "__state->gpu_context->streams[0]"
"""The stream in the code that DaCe generates."""


@contextmanager
def one_stream() -> Iterator[None]:
    """Sets DaCe's configuration, in this context, so that it generates code for one stream."""
    with config.set_temporary("compiler", "cuda", "max_concurrent_streams", value=1):
        yield


def make_asynchronous(sdfg: dace.SDFG) -> None:
    """
    Changes an SDFG of gt4py's in place: it waits only where gt4py was asked to, at the end of a synchronous call and
    where it measures times, and there for its own stream alone. Memory that a call allocates comes from the pool of the
    stream, because `cudaMalloc` and `cudaFree` wait for the whole GPU.
    """
    for nested in sdfg.all_sdfgs_recursive():
        for array in nested.arrays.values():
            if isinstance(array, data.Array) and _is_allocated_by_calls(array):
                array.pool = True
        for state in nested.states():
            state.nosync = True
            for node in state.nodes():
                if isinstance(node, nodes.Tasklet) and node.language == dtypes.Language.CPP:
                    node.code = CodeBlock(_on_own_stream(node.code.as_string), dtypes.Language.CPP)


def _is_allocated_by_calls(array: data.Array) -> bool:
    kept = (dtypes.AllocationLifetime.Persistent, dtypes.AllocationLifetime.External, dtypes.AllocationLifetime.Global)
    return array.transient and array.storage == dtypes.StorageType.GPU_Global and array.lifetime not in kept


def _on_own_stream(code: str) -> str:
    for prefix in ("cuda", "hip"):
        own = f"{prefix}StreamSynchronize({STREAM})"
        for wait in (f"{prefix}StreamSynchronize({prefix}StreamDefault)", f"{prefix}DeviceSynchronize()"):
            code = code.replace(wait, own)
    return code
