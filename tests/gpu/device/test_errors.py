"""
What a real GPU reports is an error of the call that saw it. Each test is a process of its own, because no kernel runs
any more in a process in which one has failed.
"""

from __future__ import annotations

import re
import textwrap

from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs
from tests.support.hosting import run_script

pytestmark = programs.needs_gpu

BEGINNING = """
import sys
from pathlib import Path
import numpy as np
from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs
gpu = arrays.find()
first, second = (programs.prepare(gpu, Entry(Path(path)), called=True) for path in sys.argv[1:3])

def told(call):
    try:
        call()
        print("> no error")
    except Exception as error:
        print(f"> {type(error).__name__}: {error}")

def waited():
    try:
        gpu.wait()
    except Exception:
        pass
"""
NAMES = ("apply_diffusion_to_vn", "scale_k")
ILLEGAL_ADDRESS = "error 700 (cudaErrorIllegalAddress: an illegal memory access was encountered)"
FAILED = re.compile(r"error 7(00 \(cudaErrorIllegalAddress|17 \(cudaErrorInvalidAddressSpace): [\w /]+\)")
"""How a wrong index ends; on which address space it falls depends on where the arrays are."""


def run(text: str, entries: dict[str, Entry], **environment: str) -> list[str]:
    """What the process tells. DaCe and CuPy write about errors of CUDA on stderr, too."""
    paths = [entries[name].path for name in NAMES]
    told = run_script(BEGINNING + textwrap.dedent(text), *paths, environment=environment.items(), complains=True)
    return [line[2:] for line in told.splitlines() if line.startswith("> ")]


ANOTHER_LIBRARY = """
gpu.fail()
waited()
told(second)
told(first)
"""
BAD_TABLE = """
shape = first.arguments["offset_provider"]["E2C2V"].__cuda_array_interface__["shape"]
table = gpu.array(np.full(shape, 2**30, np.int32, order="F"))
bad = programs.Call(first.program, {**first.arguments, "offset_provider": {"E2C2V": table}})
told(bad)
waited()
told(second)
told(first)
"""


def test_the_first_program_that_sees_a_failed_kernel_is_named(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    assert run(ANOTHER_LIBRARY, entries) == [
        f"RuntimeError: The GPU reported {ILLEGAL_ADDRESS} while program 'scale_k' ran. The kernel that failed may be"
        " an earlier program's: GTSTUB_GPU_SYNC=1 names that program.",
        f"RuntimeError: Program 'apply_diffusion_to_vn' cannot run: the GPU reports {ILLEGAL_ADDRESS} since a call of"
        " program 'scale_k'. Start a new process.",
    ]


@programs.needs_kernels
def test_a_table_with_wrong_indices_is_blamed_on_the_next_program(entries: dict[str, Entry]) -> None:
    """The indices of tables on a GPU are not checked."""
    first, second, third = run(BAD_TABLE, entries)
    assert first == "no error"
    error = FAILED.search(second)
    assert error is not None
    assert second.startswith(f"RuntimeError: The GPU reported {error[0]} while program 'scale_k' ran.")
    assert third.endswith(f" {error[0]} since a call of program 'scale_k'. Start a new process.")


@programs.needs_kernels
def test_synchronising_names_the_program_whose_kernel_failed(entries: dict[str, Entry]) -> None:
    first, second, _ = run(BAD_TABLE, entries, GTSTUB_GPU_SYNC="1")
    error = FAILED.search(first)
    assert error is not None
    assert first == f"RuntimeError: The GPU reported {error[0]} while program 'apply_diffusion_to_vn' ran."
    assert second.endswith(f" {error[0]} since a call of program 'apply_diffusion_to_vn'. Start a new process.")


FULL = """
import ctypes
entry = Entry(Path(sys.argv[1]))
runtime = ctypes.CDLL("libcudart.so.13")  # the SDFG libraries have loaded it
blocks, size = [], 2**36
while size >= 256:
    block = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size)) == 0:
        blocks.append(block)
    else:
        runtime.cudaGetLastError()
        size //= 2
new = entry.load
told(lambda: programs.Call(new(), first.arguments)())
for block in blocks:
    assert runtime.cudaFree(block) == 0
told(lambda: programs.Call(new(), first.arguments)())
told(second)
waited()
"""


@programs.needs_kernels
def test_without_memory_a_program_says_so_or_needs_none_and_works_when_there_is_some(entries: dict[str, Entry]) -> None:
    """The runtime has blocks of its own, which may be enough for the byte with which DaCe begins."""
    full, *later = run(FULL, entries)
    assert full in (
        "no error",
        "RuntimeError: The SDFG of program 'apply_diffusion_to_vn' could not be initialised: the GPU reported error 2"
        " (cudaErrorMemoryAllocation: out of memory).",
    )
    assert later == ["no error", "no error"]
