"""
C hosts, sanitized: programs in C load generated stubs and recording libraries and look at what arrives.

Everything is compiled here, the runtime too, because a sanitizer must see all of it, and with all warnings as errors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gtstub.toolchain import INCLUDE
from recording import build_recording_library, recording_source
from signatures import GATHER_PROGRAM, GATHER_SDFG, SMALL_PROGRAM, SMALL_SDFG, WHOLE_PROGRAM, WHOLE_SDFG
from stubs import write_stub

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "runtime" / "core"

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")
ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
THREAD = ("-fsanitize=thread", "-g", "-O1")
PLAIN = ("-g", "-O1")

BUILDS = {
    "gcc-address": ("gcc", *ADDRESS),
    "clang-address": ("clang", *ADDRESS),
    "gcc-thread": ("gcc", *THREAD),
    "gcc-plain": ("gcc", *PLAIN),
}

PROGRAMS = ((WHOLE_SDFG, WHOLE_PROGRAM), (SMALL_SDFG, SMALL_PROGRAM), (GATHER_SDFG, GATHER_PROGRAM))

# Every stub exports a gts_descriptor, which is found through its own library only.
ENVIRONMENT = os.environ | {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:detect_odr_violation=0",
    "TSAN_OPTIONS": "halt_on_error=1",
    "LD_PRELOAD": "",
}


class Build:
    """Runtime, three stubs and their recording libraries in one folder, made by one compiler with one set of flags."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self.folder = folder
        self._command = command
        core = sorted(CORE.glob("*.c"))
        self.compile("libgtstub.so.3", *core, "-shared", "-fvisibility=hidden", "-Wl,-soname,libgtstub.so.3")
        for sdfg, program in PROGRAMS:
            source = write_stub(sdfg, program, folder)
            self.shared(f"{source.stem}.so", source, "-fvisibility=hidden")
            build_recording_library(sdfg, folder, [*command, *WARNINGS])

    def shared(self, output: str, *sources: Path | str) -> None:
        self.compile(output, *sources, "-shared", "-L.", "-l:libgtstub.so.3")

    def executable(self, source: Path, *stubs: str) -> Path:
        output = source.stem
        self.compile(output, source, *(f"./{stub}" for stub in stubs), "-L.", "-l:libgtstub.so.3", "-Wl,-rpath,$ORIGIN")
        return self.folder / output

    def run(self, source: str, *arguments: str, stubs: Sequence[str], under: Sequence[str] = ()) -> None:
        program = self.executable(HERE / source, *stubs)
        command = [*under, str(program), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=120
        )
        assert done.returncode == 0, f"{source} exited with {done.returncode}\n{done.stdout}{done.stderr}"

    def compile(self, output: str, *arguments: Path | str) -> None:
        common = (*self._command, *WARNINGS, "-fPIC", "-pthread", "-I", str(INCLUDE), "-I", ".", "-o", output)
        done = subprocess.run(
            [*common, *map(str, arguments), "-ldl", "-lm"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{output} was not built\n{done.stderr}"


def works(command: Sequence[str], folder: Path) -> bool:
    """Whether the compiler is there and its sanitizers are: some distributions pack them apart."""
    if shutil.which(command[0]) is None:
        return False
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run([*command, str(source), "-o", str(folder / "empty")], capture_output=True, check=False)
    return done.returncode == 0 and subprocess.run([str(folder / "empty")], check=False).returncode == 0


@pytest.fixture(scope="module")
def builds() -> dict[str, Build]:
    """Builds by name, as far as they have been asked for."""
    return {}


@pytest.fixture
def build(request: pytest.FixtureRequest, builds: dict[str, Build], tmp_path_factory: pytest.TempPathFactory) -> Build:
    name: str = request.param
    if name not in builds:
        folder = tmp_path_factory.mktemp(name)
        if not works(BUILDS[name], folder):
            pytest.skip(f"{' '.join(BUILDS[name][:2])} is not installed")
        builds[name] = Build(folder, BUILDS[name])
    return builds[name]


address = pytest.mark.parametrize("build", ["gcc-address", "clang-address"], indirect=True)
thread = pytest.mark.parametrize("build", ["gcc-thread"], indirect=True)
plain = pytest.mark.parametrize("build", ["gcc-plain"], indirect=True)

WHOLE = ("./whole_stub.so", "./libwhole.so")
PROG = ("./prog_stub.so", "./libprog.so")


@address
def test_contracts(build: Build) -> None:
    build.run("contracts.c", *WHOLE, stubs=["whole_stub.so"])


@address
def test_tables(build: Build) -> None:
    build.run("tables.c", "./gather_stub.so", "./libgather.so", stubs=["gather_stub.so"])


@address
def test_opening(build: Build) -> None:
    for name, files in {"entry": ["whole_stub.so", "libwhole.so"], "alone": ["whole_stub.so"], "nothing": []}.items():
        (build.folder / name).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(build.folder / file, build.folder / name)
    build.run("opening.c", stubs=["whole_stub.so"])


@address
def test_life_of_a_handle(build: Build) -> None:
    build.run("life.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@address
def test_threads(build: Build) -> None:
    build.run("threads.c", *WHOLE, stubs=["whole_stub.so"])


@thread
def test_threads_do_not_race(build: Build) -> None:
    build.run("threads.c", *WHOLE, stubs=["whole_stub.so"])


@address
def test_profiles(build: Build) -> None:
    build.run("profile.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@thread
def test_profiles_do_not_race(build: Build) -> None:
    build.run("profile.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@address
def test_libraries_that_do_not_fit(build: Build) -> None:
    text = recording_source(WHOLE_SDFG)
    spoiled = {
        "without_init": ("__dace_init_whole", "__dace_init_other"),
        "without_exit": ("__dace_exit_whole", "__dace_exit_other"),
        "without_workspace": ("__dace_set_external_memory_CPU_Heap", "__dace_set_external_memory_GPU_Global"),
    }
    for name, (found, other) in spoiled.items():
        assert found in text
        (build.folder / f"{name}.c").write_text(text.replace(found, other), encoding="utf-8")
        build.shared(f"{name}.so", f"{name}.c")
    for name, fields in {"other_abi": ".abi = 99", "huge": ".abi = GTS_ABI, .args_size = PTRDIFF_MAX"}.items():
        descriptor = f'{{{fields}, .name = "whole"}}'
        lines = ('#include "gtstub/stub.h"', "extern const gts_stub gts_descriptor;")
        (build.folder / f"{name}.c").write_text("\n".join((*lines, f"const gts_stub gts_descriptor = {descriptor};\n")))
        build.shared(f"{name}.so", f"{name}.c")
    build.run("loading.c", stubs=["whole_stub.so"])


VALGRIND = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite")


@plain
@pytest.mark.valgrind
@pytest.mark.parametrize("source", ["contracts.c", "threads.c"])
def test_under_valgrind(build: Build, source: str) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    build.run(source, *WHOLE, stubs=["whole_stub.so"], under=VALGRIND)


@plain
@pytest.mark.valgrind
def test_life_of_a_handle_under_valgrind(build: Build) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    build.run("life.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"], under=VALGRIND)
