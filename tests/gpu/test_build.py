"""Programs are built for GPUs on a machine without one: nvcc compiles them, and a call says that there is no driver."""

from __future__ import annotations

import ctypes
import subprocess

import pytest

from gtstub.entries.cache.entry import Entry
from tests.support.gpu_programs import PROGRAMS, kernels, needs_nvcc
from tests.support.hosting import run_script
from tests.support.programs import need

pytestmark = needs_nvcc

EXPORTS = {
    "__dace_init_{}",
    "__dace_exit_{}",
    "__program_{}",
    "__dace_init_cuda",
    "__dace_exit_cuda",
    "__dace_gpu_set_stream",
    "__dace_gpu_set_all_streams",
    "__dace_gpu_last_error",
    "__dace_gpu_drain_error",
}

CALLS = """
import sys
from pathlib import Path
from gtstub.entries.cache.entry import Entry
from gtstub.stub.signature.documents import program_from_json
from tests.support.allocations import growth, held
from tests.support.gpu_programs import arguments

class OnDevice:  # the memory is never accessed, because the SDFG does not start
    def __init__(self, array):
        self.__cuda_array_interface__ = {
            **{"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str},
            **{"data": (4096, False), "version": 3},
        }

entry = Entry(Path(sys.argv[1]))
text = (entry.path / "program.json").read_text()
program = entry.load()
good, bad = (arguments(program_from_json(text, ""), make) for make in (OnDevice, lambda array: array))

def refused(arguments):
    try:
        program(**arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

errors = [refused(good), refused(good), refused(bad), refused(good)]
before = held()
for _ in range(100):
    refused(good)
grown = growth(before)
for line in (*errors, grown):
    print(f"> {line}")  # DaCe prints, too
"""


def run(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_entry_has_the_code_of_its_architecture(entries: dict[str, Entry], arch: str, name: str) -> None:
    entry = entries[name]
    manifest = entry.verify()
    assert {manifest.stub, manifest.library} <= {path.name for path in entry.path.iterdir()}
    assert (manifest.machine.device, manifest.machine.arch) == ("cuda", arch)
    found = kernels(entry, arch)
    assert found
    assert all(0 < registers <= 255 for registers in found.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_library_exports_what_the_runtime_calls(entries: dict[str, Entry], name: str) -> None:
    need("nm", "readelf")
    manifest = entries[name].manifest()
    library, stub = (entries[name].path / file for file in (manifest.library, manifest.stub))
    exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    assert {symbol.format(manifest.name) for symbol in EXPORTS} <= exported
    assert "[libcudart.so.13]" in run("readelf", "-d", library)
    assert "libcud" not in run("readelf", "-d", stub)


@pytest.mark.skipif(has_driver(), reason="This machine has a driver.")
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_driver_each_call_is_refused_by_the_same_sentence(entries: dict[str, Entry], name: str) -> None:
    """The handle is initialised anew at each call, so the program works once there is a driver."""
    lines = run_script(CALLS, entries[name].path).splitlines()
    first, second, on_cpu, third, grown = (line[2:] for line in lines if line.startswith("> "))
    assert first == (
        f"RuntimeError: Program '{name}' finds no GPU: error 35 (cudaErrorInsufficientDriver: CUDA driver"
        " version is insufficient for CUDA runtime version)."
    )
    assert (second, third) == (first, first)
    assert on_cpu.startswith("ValueError: Argument ")
    assert on_cpu.endswith(" must be on device 'cuda', not on 'cpu'.")
    assert int(grown) < 100  # less than one for each of 100 calls
