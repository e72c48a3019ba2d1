"""
Fortran hosts for tests: runtime, stubs and recording libraries in one folder, made by gfortran and its C compiler with
one set of flags, and programs in Fortran that are linked with them.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gtstub.install import INCLUDE, RUNTIME
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support import target
from tests.support.checkout import ROOT
from tests.support.runtime import runtime_sources
from tests.support.sdfg_libraries import build_recording_library
from tests.support.stubs import render_stub

RUNTIME_SOURCES = ROOT / "runtime"

MODULES = ("gtstub_errors", "gtstub_steps", "gtstub_granules", "gtstub")
"""gtstub's modules, in the order in which they are compiled."""

WARNINGS = ("-Wall", "-Wextra", "-Werror")
FORTRAN = (target.tool("gfortran"), "-std=f2018")
C = (target.tool("gcc"), "-std=c11", "-Wconversion", *WARNINGS)


def works(flags: Sequence[str], folder: Path) -> bool:
    """Whether gfortran links with these flags: some distributions pack sanitizers apart."""
    source = folder / "empty.f90"
    source.write_text("end program\n", encoding="utf-8")
    command = [*FORTRAN, *flags, str(source), "-o", str(folder / "empty")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Compilers:
    """gfortran and its C compiler, in `folder`; `flags` are for both."""

    def __init__(self, folder: Path, flags: Sequence[str]) -> None:
        self.folder = folder
        self.flags = tuple(flags)

    def c(self, output: str, *arguments: str | Path) -> None:
        self._run(*C, *self.flags, "-fPIC", "-pthread", "-I", INCLUDE, "-o", output, *arguments)

    def module(self, source: str | Path) -> None:
        self._run(*FORTRAN, *WARNINGS, *self.flags, "-c", source)

    def _run(self, *command: str | Path) -> None:
        done = self._try(*command)
        assert done.returncode == 0, done.stderr

    def _try(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(list(map(str, command)), cwd=self.folder, capture_output=True, text=True, check=False)


HIDDEN = ("-shared", "-fvisibility=hidden")


@functools.cache
def runtime_files(flags: tuple[str, ...]) -> Mapping[str, bytes]:
    """What all programs need, compiled once with these flags: the runtime of gtstub and its modules."""
    with tempfile.TemporaryDirectory() as folder:
        compilers = Compilers(Path(folder), flags)
        sources = (*runtime_sources(), "-I", RUNTIME_SOURCES)
        compilers.c(RUNTIME.name, *sources, *HIDDEN, f"-Wl,-soname,{RUNTIME.name}", "-ldl")
        for module in MODULES:
            compilers.module(RUNTIME_SOURCES / "fortran" / f"{module}.f90")
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


class Build(Compilers):
    """What a Fortran host of one program needs."""

    def __init__(self, sdfg: SdfgSignature, program: ProgramSignature, folder: Path, flags: Sequence[str] = ()) -> None:
        super().__init__(folder, flags)
        self.name = program.name
        sources = render_stub(sdfg, program, fortran=True)
        for suffix, text in ((".h", sources.header), (".c", sources.source), (".f90", sources.module)):
            (folder / f"{self.name}_stub{suffix}").write_text(text, encoding="utf-8")
        for name, content in runtime_files(self.flags).items():
            (folder / name).write_bytes(content)
        self.c(f"{self.name}_stub.so", f"{self.name}_stub.c", *HIDDEN, "-DGTS_FORTRAN", "-L.", f"-l:{RUNTIME.name}")
        self.module(f"{self.name}_stub.f90")
        build_recording_library(sdfg, folder, [C[0], *self.flags])
        self._sdfg_library = sdfg.library

    def host(self, *sources: Path, libraries: Sequence[str | Path] = ()) -> Path:
        """
        Links a host; the last source is its main program, whose name it gets. Derived types are packed, so that there
        are components whose stride is no multiple of their size, and logicals of any value are no errors. `libraries`
        are more than those that every host needs, and their flags.
        """
        host = self.folder / sources[-1].stem
        linked = [
            *libraries,
            f"./{self.name}_stub.so",
            f"./{self._sdfg_library}",
            "-L.",
            f"-l:{RUNTIME.name}",
            "-Wl,-rpath,$ORIGIN",
        ]
        self._run(
            *FORTRAN,
            *self.flags,
            "-fno-sanitize=bool",
            "-fopenmp",
            "-fpack-derived",
            *sources,
            *(f"{module}.o" for module in MODULES),
            *linked,
            "-o",
            host,
        )
        return host

    def compiles(self, source: str) -> str:
        """Compiles the text of a host; returns what the compiler says where it refuses it, else nothing."""
        (self.folder / "user.f90").write_text(source, encoding="utf-8")
        done = self._try(*FORTRAN, *self.flags, "-fsyntax-only", "user.f90")
        return "" if done.returncode == 0 else done.stderr


def run(host: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a host where it was built."""
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0", "LD_PRELOAD": ""}
    return subprocess.run(
        target.command(host, *arguments),
        cwd=host.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
