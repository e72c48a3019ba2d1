"""
A host in C++ that calls an SDFG for a GPU with constants, and that launches empty kernels: in less time nobody can call
it. nvcc compiles it, because it has a kernel.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import Entry
from gtstub.stub.plan.model import AxisValue, CallPlan, Data, FieldLeaf, Metric, Slot, Value
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_from_json, sdfg_from_json


@dataclasses.dataclass(frozen=True)
class Host:
    library: ctypes.CDLL

    def call(self, stream: int, count: int) -> None:
        """Calls the SDFG so often on a stream."""
        self.library.call_sdfg(ctypes.c_void_p(stream), ctypes.c_long(count))

    def launch(self, stream: int, count: int) -> None:
        """Launches so many empty kernels."""
        _check("launch_empty", self.library.launch_empty(ctypes.c_void_p(stream), ctypes.c_long(count)))

    def kernels(self, stream: int) -> int:
        """How many kernels a call launches: those in its graph. 1 on the stand-in, which does not tell."""
        cuda = self.library  # its symbols are also those of the CUDA runtime that it is linked with
        if not hasattr(cuda, "cudaGraphGetNodes"):
            return 1
        on, graph, count = ctypes.c_void_p(stream), ctypes.c_void_p(), ctypes.c_size_t()
        _check("cudaStreamBeginCapture", cuda.cudaStreamBeginCapture(on, 1))
        self.call(stream, 1)
        _check("cudaStreamEndCapture", cuda.cudaStreamEndCapture(on, ctypes.byref(graph)))
        _check("cudaGraphGetNodes", cuda.cudaGraphGetNodes(graph, None, ctypes.byref(count)))
        nodes, kind, kernels = (ctypes.c_void_p * count.value)(), ctypes.c_int(), 0
        _check("cudaGraphGetNodes", cuda.cudaGraphGetNodes(graph, nodes, ctypes.byref(count)))
        for node in nodes:
            error = cuda.cudaGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
            _check("cudaGraphNodeGetType", error)
            kernels += kind.value == 0
        cuda.cudaGraphDestroy(graph)
        return kernels


def _check(function: str, error: int) -> None:
    """Not by an assertion: the benchmark runs under 'python -O'."""
    if error != 0:
        raise RuntimeError(f"{function} returned {error}.")


def build(entry: Entry, arguments: tuple[Any, ...], folder: Path) -> Host:
    """`arguments` are those of a call; the last one is the offset provider. They must live as long as the host."""
    texts = {kind: (entry.path / f"{kind}.json").read_text(encoding="utf-8") for kind in ("sdfg", "program")}
    plan = make_plan(sdfg_from_json(texts["sdfg"], "sdfg.json"), program_from_json(texts["program"], "program.json"))
    source, library = folder / "gpu_host.cu", folder / "gpu_host.so"
    source.write_text(_source(plan, arguments), encoding="utf-8")
    sdfg = entry.path / entry.manifest().library
    flags = ["-shared", "-cudart", "shared", "-O2", "-Xcompiler", "-fPIC", f"-Xlinker=-rpath={sdfg.parent}", str(sdfg)]
    subprocess.run([os.environ["CUDACXX"], str(source), *flags, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    _check("open_sdfg", loaded.open_sdfg())
    return Host(loaded)


class Arguments:
    """The values of slots, as constants in C."""

    def __init__(self, plan: CallPlan, arguments: tuple[Any, ...]) -> None:
        *given, provider = arguments
        self._plan = plan
        self._given: Mapping[str, Any] = {
            **dict(zip((each.name for each in plan.parameters), given, strict=True)),
            **{f"gt_conn_{name}": table for name, table in provider.items()},
        }

    def constant(self, slot: Slot) -> str:
        match slot.source:
            case Data(leaf):
                return f"({slot.c_type})UINT64_C({self._interface(leaf)['data'][0]})"
            case AxisValue(leaf, axis, property_):
                return str(self._axis(leaf, axis, property_))
            case Value(leaf):
                value = self._given[leaf.name]
                return str(value).lower() if isinstance(value, bool) else repr(value)
            case Metric():
                return "&compute_time" if slot.is_array else "0"
            case _:
                raise NotImplementedError(slot.source)

    def _interface(self, leaf: FieldLeaf) -> Mapping[str, Any]:
        field = self._given[leaf.name]
        found: Mapping[str, Any] = getattr(field, "_ndarray", field).__cuda_array_interface__
        return found

    def _axis(self, leaf: FieldLeaf, axis: int, property_: str) -> int:
        """All domains begin at 0. The interface has no strides if the array is contiguous in C's order."""
        interface = self._interface(leaf)
        shape, item = interface["shape"], int(interface["typestr"][2:])
        if property_ != "stride":
            return 0 if property_ == "start" else int(shape[axis])
        if interface.get("strides") is not None:
            return int(interface["strides"][axis]) // item
        found = 1
        for size in shape[axis + 1 :]:
            found *= int(size)
        return found


def _source(plan: CallPlan, arguments: tuple[Any, ...]) -> str:
    values = Arguments(plan, arguments)
    types = ", ".join(slot.c_type for slot in plan.slots)
    init_types = ", ".join(slot.c_type for slot in plan.init) or "void"
    constants = ", ".join(map(values.constant, plan.slots))
    init = ", ".join(map(values.constant, plan.init))
    name = plan.sdfg_name
    return f"""\
#include <cstdint>
#include <cuda_runtime.h>

extern "C" {{
void *__dace_init_{name}({init_types});
void __program_{name}(void *, {types});
bool __dace_gpu_set_all_streams(void *, cudaStream_t);
int open_sdfg();
void call_sdfg(cudaStream_t stream, long count);
int launch_empty(cudaStream_t stream, long count);
}}

static void *handle;
static double compute_time;

__global__ void empty() {{}}

/* 0, or -1 after an error. */
int open_sdfg()
{{
    (void)compute_time;
    handle = __dace_init_{name}({init});
    return handle == nullptr ? -1 : 0;
}}

void call_sdfg(cudaStream_t stream, long count)
{{
    __dace_gpu_set_all_streams(handle, stream);
    for (long i = 0; i < count; ++i)
        __program_{name}(handle, {constants});
}}

/* The first error of CUDA's, or 0. */
int launch_empty(cudaStream_t stream, long count)
{{
    for (long i = 0; i < count; ++i)
        empty<<<1, 32, 0, stream>>>();
    return (int)cudaGetLastError();
}}
"""
