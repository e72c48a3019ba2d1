"""What the tests of faults share: compiled parts, libraries to preload, and processes that build meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import gtstub
from gtstub.entries.toolchain import compiler
from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import build_library, c_compiler
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import build_stub

HERE = Path(__file__).parent

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")

BUILD_TIMEOUT = "1"
"""Seconds, in GTSTUB_BUILD_TIMEOUT: what a process waits for one that was killed before it had said who it is."""

LIBRARY = """\
#include <stddef.h>
#define EXPORT __attribute__((visibility("default")))
EXPORT void *__dace_init_prog(void)
{
    static int handle;
    return &handle;
}
EXPORT int __dace_exit_prog(void *handle)
{
    return handle == NULL;
}
EXPORT void __program_prog(void *handle, double *out, const double *x, int n, double factor)
{
    (void)handle;
    for (int i = 0; i < n; ++i)
        out[i] = factor * x[i] + NUMBER;
}
"""


class Workshop:
    """A folder with the parts of `numbers` programs, each of which adds its own number, and libraries to preload."""

    def __init__(self, folder: Path, numbers: int = 4) -> None:
        self.parts = folder / "parts"
        stub = build_stub(SMALL_SDFG, SMALL_PROGRAM, folder / "stub", compiler.find(folder / "toolchain"))
        for number in range(numbers):
            directory = self.parts / str(number)
            library = build_library(LIBRARY, folder / str(number) / "libprog.so", [c_compiler(), f"-DNUMBER={number}"])
            directory.mkdir(parents=True)
            library.rename(directory / library.name)
            (directory / stub.name).hardlink_to(stub)
        self.inject = _preload(folder / "inject.so", "inject.c", "calls.c", "nfs.c")
        self.clock = _preload(folder / "clock.so", "clock.c")

    def command(self, root: Path, *numbers: int, builds: Path | None = None) -> list[str]:
        """A builder of programs, by their numbers."""
        arguments = [root, self.parts, ",".join(map(str, numbers or (0,))), *([] if builds is None else [builds])]
        return [sys.executable, str(HERE / "builder.py"), *map(str, arguments)]

    def start(self, root: Path, *numbers: int, builds: Path | None = None, **more: object) -> subprocess.Popen[str]:
        """Starts a builder; `more` are environment variables."""
        return subprocess.Popen(
            self.command(root, *numbers, builds=builds),
            env=environment(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, root: Path, *numbers: int, builds: Path | None = None, **more: object) -> Ended:
        """Runs a builder to its end."""
        return Ended(self.start(root, *numbers, builds=builds, **more))

    def injecting(self, root: Path, **settings: object) -> dict[str, object]:
        """Environment variables: what `inject.c` is to do below a root; `at=3` is GTS_INJECT_AT=3."""
        variables = {f"GTS_INJECT_{name.upper()}": value for name, value in settings.items()}
        return {"LD_PRELOAD": self.inject, "GTS_INJECT_BELOW": root, **variables}

    def calls(self, root: Path, log: Path) -> list[str]:
        """The calls of a whole run, in order: what a fault can happen to, as 'fsync libprog.so'."""
        done = self.run(root, **self.injecting(root, log=log))
        assert done.status == 0, done.errors
        lines = [line.split(" ", 3) for line in log.read_text().splitlines()]
        return [f"{call} {Path(path).name}" for _, call, _, path in lines]


class Ended:
    """How a builder ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.output, self.errors = process.communicate(timeout=120)
        self.status = process.returncode

    @property
    def is_refusal(self) -> bool:
        """Whether it said what is wrong, with one message of ours."""
        return self.status == 6 and "Traceback" not in self.errors and self.errors.rstrip().endswith(".")


def environment(more: Mapping[str, object]) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(gtstub.__file__).parents[1]))),
        "GTSTUB_BUILD_TIMEOUT": BUILD_TIMEOUT,
        "GTSTUB_PROGRESS": "off",
        **{name: str(value) for name, value in more.items()},
    }


def _preload(output: Path, *sources: str) -> Path:
    flags = ("-std=c11", *WARNINGS, "-O1", "-shared", "-fPIC", "-pthread")
    subprocess.run([c_compiler(), *flags, "-o", output, *(HERE / source for source in sources), "-ldl"], check=True)
    return output
