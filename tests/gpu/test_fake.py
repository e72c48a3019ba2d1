"""Programs that nvcc has built run on the stand-in for the CUDA runtime, which is declared as NVIDIA's headers say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from tests.support.fake_cuda import SOURCES, build
from tests.support.gpu_programs import PROGRAMS, kernels, needs_nvcc
from tests.support.hosting import run_script
from tests.support.programs import need
from tests.support.sdfg_libraries import c_compiler

pytestmark = needs_nvcc

CALLS = """
import sys
from pathlib import Path
from gtstub.entries.cache.entry import Entry
from gtstub.stub.signature.documents import program_from_json
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.gpu_programs import arguments

fake = FakeCuda(Path(sys.argv[1]))
entry = Entry(Path(sys.argv[2]))
program = entry.load()
program.stream = fake.stream(1)
text = (entry.path / "program.json").read_text()
given = arguments(program_from_json(text, ""), lambda array: DeviceArray(fake, array))
program(**given)
first = fake.log()
fake.clear()
program(**given)
print(*fake.log(), "pending:", *fake.ran(), "first:", *first, sep="\\n")
fake.call("cudaDeviceSynchronize")
print("ran:", *fake.ran(), sep="\\n")
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_launches_each_kernel_on_one_stream_and_waits_for_none(
    entries: dict[str, Entry], arch: str, name: str
) -> None:
    told = run_script(CALLS, build(), entries[name].path)
    second, pending, first, ran = re.split(r"^(?:pending|first|ran):\n", told, flags=re.MULTILINE)
    launches = re.findall(r"^cudaLaunchKernel (\w+) stream=(\d+)$", second, re.MULTILINE)
    assert {kernel for kernel, _ in launches} == set(kernels(entries[name], arch))
    (stream,) = {stream for _, stream in launches}
    assert set(re.findall(r"stream=(\d+)", second)) == {stream} != {"0"}
    assert len(re.findall("^cudaMallocAsync", second, re.MULTILINE)) == len(re.findall("^cudaFreeAsync", second, re.M))
    assert "Synchronize" not in second
    assert pending == ""
    assert launches == re.findall(r"^cudaLaunchKernel (\w+) stream=(\d+)$", first, re.MULTILINE)
    started = re.findall(r"^(\w+) stream=(\d+)$", ran, re.MULTILINE)
    assert [each for each in started if each[0] != "free"][-len(launches) :] == launches


# --- What the stand-in declares ---------------------------------------------------------------------------------------

STRUCT = ("type", "device", "devicePointer", "hostPointer", "reserved")


def test_the_stand_in_is_declared_as_nvidia_declares_it(tmp_path: Path) -> None:
    """One text is compiled with each header: it prints all enumerators, and the layouts of all structs."""
    header = (SOURCES / "cudart.h").read_text(encoding="utf-8")
    names = re.findall(r"\b(cuda\w+) = \d+", header)
    assert len(names) > 50
    lines = [
        *(f'printf("%d {name}\\n", (int){name});' for name in names),
        *(f'printf("%zu\\n", offsetof(struct cudaPointerAttributes, {member}));' for member in STRUCT),
        'printf("%zu %zu\\n", sizeof(struct cudaPointerAttributes), sizeof(struct dim3));',
        'printf("%p %p %d\\n", (void *)cudaStreamLegacy, (void *)cudaStreamPerThread, CUDART_VERSION);',
    ]
    text = "\n".join(
        ("#include <stddef.h>\n#include <stdio.h>\n#include HEADER", "int main(void)", "{", *lines, "}", "")
    )
    (tmp_path / "print.c").write_text(text, encoding="utf-8")

    def printed(file: str) -> str:
        program = tmp_path / Path(file).stem
        flags = ("-std=c11", f'-DHEADER="{file}"', f"-I{SOURCES}", "-o", program)
        subprocess.run([c_compiler(), *flags, tmp_path / "print.c"], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout

    assert printed("cudart.h") == printed("cuda_runtime_api.h")


def exported(library: str | Path) -> set[str]:
    done = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


REAL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.cudaGetErrorName.restype = library.cudaGetErrorString.restype = ctypes.c_char_p
for error in map(int, sys.argv[2:]):
    print(error, library.cudaGetErrorName(error), library.cudaGetErrorString(error))
"""


def test_the_stand_in_has_the_symbols_and_the_texts_of_nvidias() -> None:
    need("nm")
    own = {symbol for symbol in exported(build()) if "cuda" in symbol and not symbol.startswith("fake_cuda_")}
    real = Path(os.environ["CUDACXX"]).parents[1] / "lib" / "libcudart.so.13"
    assert len(own) > 60
    assert own <= exported(real)
    errors = re.findall(r"\bcudaError\w+ = (\d+)", (SOURCES / "cudart.h").read_text(encoding="utf-8"))
    texts = [run_script(REAL, library, *errors) for library in (build(), real)]
    assert texts[0] == texts[1]
