"""One interrupt ends whatever waits for a build, with its workers and compilers."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

PATIENCE = 120
"""Seconds. The compiler takes much longer, so a wait that was not ended exceeds them."""

COMPILER = """#!/bin/sh
# Compiles what CMake tries. For a program, it opens the named pipe, and does not end.
case "$*" in
*.dacecache*|*/src/cpu/*) exec 9>"$PIPE"; echo begun >&9; exec sleep 10000 ;;
esac
exec c++ "$@"
"""

PROGRAMS = """
import gt4py.next as gtx
import numpy as np
import gtstub

Edge = gtx.Dimension("Edge")
type EdgeField = gtx.Field[gtx.Dims[Edge], gtx.float64]

@gtx.field_operator
def twice(a: EdgeField) -> EdgeField:
    return a + a

@gtx.field_operator
def square(a: EdgeField) -> EdgeField:
    return a * a

@gtx.field_operator
def cube(a: EdgeField) -> EdgeField:
    return a * a * a

@gtx.program
def first(a: EdgeField, out: EdgeField):
    twice(a, out=out)

@gtx.program
def second(a: EdgeField, out: EdgeField):
    square(a, out=out)

@gtx.program
def third(a: EdgeField, out: EdgeField):
    cube(a, out=out)

def fields():
    return [gtx.as_field([Edge], np.ones(4)) for _ in range(2)]

def call(program):
    a, out = fields()
    program(a=a, out=out, offset_provider={})
"""

COMPILE = "compiled = [gtstub.compile(each) for each in (first, second, third)]\n"
BUILD = "from gtstub.cli.app import main; main()"
SCRIPTS: Mapping[str, str] = {
    "wait_for_compilation": f"{COMPILE}gtstub.wait_for_compilation()",
    "call": f"{COMPILE}call(compiled[2])",
    "make_backend": """
from gtstub.frameworks.gt4py import make_backend
call(first.with_backend(make_backend(gpu=False)))
""",
    "lazy": f"{COMPILE}call(compiled[1])",
    "capture": f"{COMPILE}gtstub.capture(lambda: call(compiled[0]))",
    "dace": """
import dace
@dace.program
def plus(a: dace.float64[4]):
    a += 1
gtstub.compile(plus)(np.ones(4))
""",
}
COMMANDS: Mapping[str, Sequence[str]] = {name: ["script.py"] for name in SCRIPTS} | {
    "build": ["-c", BUILD, "build", "programs.toml"]
}
ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {"lazy": {"GTSTUB_LAZY": "1"}}


def interrupt(command: list[str], folder: Path, whom: str, environment: Mapping[str, str]) -> str:
    """Interrupts a command, or its group as Ctrl-C does, when its compiler has begun. Returns what is on stderr."""
    compiler, pipe = folder / "slow-c++", folder / "pipe"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    os.mkfifo(pipe)
    variables = {"CXX": str(compiler), "PIPE": str(pipe), "GTSTUB_CACHE_DIR": str(folder / "cache")}
    variables |= {"GT4PY_BUILD_CACHE_DIR": str(folder), "PYTHONPATH": f"{folder}:{ROOT}", "GT4PY_BUILD_JOBS": "2"}
    inherited = {name: value for name, value in os.environ.items() if name != "GT4PY_BUILD_JOBS_MODE"}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            ["env", "--default-signal=INT", *command],
            env=inherited | variables | environment,
            cwd=folder,
            stderr=errors,
            start_new_session=True,
        )
        try:
            begun = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            assert select.select([begun], [], [], PATIENCE)[0], "No compiler has begun."
            os.set_blocking(begun, True)
            (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
            process.wait(PATIENCE)
            while os.read(begun, 100):  # until all compilers have closed their ends
                pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        errors.seek(0)
        return errors.read().decode()


@pytest.mark.parametrize(
    ("name", "whom"), [("wait_for_compilation", "process"), *((name, "group") for name in COMMANDS)]
)
def test_an_interrupt_ends_a_wait(tmp_path: Path, name: str, whom: str) -> None:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    listed = [f'[[program]]\nsource = "programs:{program}"\n' for program in ("first", "second", "third")]
    (tmp_path / "programs.toml").write_text("\n".join(listed))
    (tmp_path / "script.py").write_text(f"from programs import *\n{SCRIPTS.get(name, '')}")
    said = interrupt([sys.executable, *COMMANDS[name]], tmp_path, whom, ENVIRONMENTS.get(name, {}))
    assert "memory ran out" not in said
    assert "KeyboardInterrupt" in said or said.endswith("Aborted!\n")
    assert not list((tmp_path / "cache").glob("*/*_stub.so")), "Something was published."
