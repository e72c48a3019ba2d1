"""
C hosts for tests: runtime, stubs and recording libraries in one folder, made by one compiler with one set of flags, and
programs in C that are linked with them.

Everything is compiled here, the runtime too, because a sanitizer must see all of it, and with all warnings as errors.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gtstub.abi import SONAME
from gtstub.install import INCLUDE
from tests.support import target
from tests.support.checkout import ROOT
from tests.support.programs import is_there
from tests.support.runtime import RUNTIME, runtime_sources
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import (
    CHAINED_GATHER_PROGRAM,
    CHAINED_GATHER_SDFG,
    GATHER_PROGRAM,
    GATHER_SDFG,
    MIXED_GATHER_PROGRAM,
    MIXED_GATHER_SDFG,
    PART_GATHER_PROGRAM,
    PART_GATHER_SDFG,
    SMALL_PROGRAM,
    SMALL_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    WIDE_GATHER_PROGRAM,
    WIDE_GATHER_SDFG,
)
from tests.support.stubs import write_stub

SOURCES = ROOT / "tests" / "c"
INCLUDES = ("-I", str(INCLUDE), "-I", str(RUNTIME), "-I", ".")

WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")
ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
THREAD = ("-fsanitize=thread", "-g", "-O1")
PLAIN = ("-g", "-O1")
LTO = ("-O2", "-flto")

BUILDS = {
    "gcc-address": ("gcc", *ADDRESS),
    "clang-address": ("clang", *ADDRESS),
    "gcc-thread": ("gcc", *THREAD),
    "gcc-plain": ("gcc", *PLAIN),
    "gcc-lto": ("gcc", *LTO),
    "clang-lto": ("clang", *LTO),
    "musl": ("musl-gcc", *PLAIN),
}
if not target.IS_NATIVE:  # tests with ASan run without it; the others are left out
    plain_build = (target.tool("gcc"), *PLAIN)
    BUILDS = {"gcc-address": plain_build, "gcc-plain": plain_build, "gcc-lto": (target.tool("gcc"), *LTO)}

PROGRAMS = (
    (WHOLE_SDFG, WHOLE_PROGRAM),
    (SMALL_SDFG, SMALL_PROGRAM),
    (GATHER_SDFG, GATHER_PROGRAM),
    (WIDE_GATHER_SDFG, WIDE_GATHER_PROGRAM),
    (PART_GATHER_SDFG, PART_GATHER_PROGRAM),
    (MIXED_GATHER_SDFG, MIXED_GATHER_PROGRAM),
    (CHAINED_GATHER_SDFG, CHAINED_GATHER_PROGRAM),
)

# Every stub exports a gts_descriptor, which is found through its own library only.
ENVIRONMENT = os.environ | {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:detect_odr_violation=0",
    "TSAN_OPTIONS": "halt_on_error=1",
    "LD_PRELOAD": "",
}


class Build:
    """Runtime, stubs and their recording libraries in one folder, made by one compiler with one set of flags."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self.folder = folder
        self.command = command
        hidden = ("-shared", "-fvisibility=hidden", f"-Wl,-soname,{SONAME}")
        self.compile(SONAME, *runtime_sources(), *hidden)
        for sdfg, program in PROGRAMS:
            source = write_stub(sdfg, program, folder)
            self.shared(f"{source.stem}.so", source, "-fvisibility=hidden")
            build_recording_library(sdfg, folder, [*command, *WARNINGS])

    def shared(self, output: str, *sources: Path | str) -> None:
        self.compile(output, *sources, "-shared", "-L.", f"-l:{SONAME}")

    def executable(self, source: Path, *stubs: str) -> Path:
        output = source.stem
        self.compile(output, source, *(f"./{stub}" for stub in stubs), "-L.", f"-l:{SONAME}", "-Wl,-rpath,$ORIGIN")
        return self.folder / output

    def run(
        self,
        source: str,
        *arguments: str,
        stubs: Sequence[str],
        under: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Runs a program with further environment variables, and returns what it has printed on stderr."""
        program = self.executable(SOURCES / source, *stubs)
        command = [*under, *target.command(program, *arguments)]
        environment = ENVIRONMENT | dict(variables or {})
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, env=environment, timeout=120
        )
        assert done.returncode == 0, f"{source} exited with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stderr

    def compile(self, output: str, *arguments: Path | str) -> None:
        common = (*self.command, *WARNINGS, "-fPIC", "-pthread", *INCLUDES, "-o", output)
        done = subprocess.run(
            [*common, *map(str, arguments), "-ldl", "-lm"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{output} was not built\n{done.stderr}"


def works(command: Sequence[str], folder: Path) -> bool:
    """Whether the compiler is there and its sanitizers are: some distributions pack them apart."""
    if not is_there(command[0]):
        return False
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run([*command, str(source), "-o", str(folder / "empty")], capture_output=True, check=False)
    return done.returncode == 0 and subprocess.run(target.command(folder / "empty"), check=False).returncode == 0


address = pytest.mark.parametrize("build", ["gcc-address", "clang-address"], indirect=True)
thread = pytest.mark.parametrize("build", ["gcc-thread"], indirect=True)
others = pytest.mark.parametrize("build", ["gcc-lto", "clang-lto", "musl"], indirect=True)
plain = pytest.mark.parametrize("build", ["gcc-plain"], indirect=True)

WHOLE = ("./whole_stub.so", "./libwhole.so")
PROG = ("./prog_stub.so", "./libprog.so")
