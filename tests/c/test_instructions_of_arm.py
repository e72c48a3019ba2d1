"""
The gates on the cost of a call on aarch64: the instructions that an emulated CPU executes, counted as
tests/frameworks/gt4py/test_instructions.py counts those of this machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from gtstub.abi import SONAME
from gtstub.install import INCLUDE
from gtstub.stub.plan.planner import make_plan
from tests.benchmarks import c_host
from tests.benchmarks.peers import HERE
from tests.support import target
from tests.support.c_hosts import Build, works
from tests.support.goldens import signatures_of
from tests.support.sdfg_libraries import build_null_library
from tests.support.stubs import write_stub

pytestmark = pytest.mark.skipif(not target.PREFIX.startswith("aarch64"), reason="a CPU of aarch64 that is emulated")

SDFG, PROGRAM = signatures_of("apply_diffusion_to_vn")
PLAN = make_plan(SDFG, PROGRAM)

COUNT = 100
LOGGED = re.compile(r"^Trace .*\] (\w*)$", re.MULTILINE)
FUNCTIONS = {f"time_{way}" for way in ("bare", "memory", "stub", "bound", "step", "long_step")}

EMULATED = ("-singlestep", "-d", "exec,nochain")
"""The emulator writes a line for each instruction, with the name of its function if it is one of the program's own."""

GENERIC, OWN = ("-O2",), ("-O2", "-mcpu=neoverse-v1")
"""As gtstub compiles a stub, and for a CPU with atomic instructions: without this, each of them is a function call."""


def executed(program: Path, *arguments: str | Path) -> Counter[str]:
    """The instructions between the beginning of each function that `main` calls and its end."""
    log = program.with_suffix(".log")
    emulator, *rest = target.command(program, *arguments)
    command = [emulator, *EMULATED, "-D", str(log), *rest]
    environment = os.environ | {"QEMU_CPU": "max", "LD_BIND_NOW": "1"}  # no call looks for a function any more
    subprocess.run(command, cwd=program.parent, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=300)
    counts: Counter[str] = Counter()
    inside = ""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if (found := LOGGED.match(line)) is None:
                continue
            if found[1] in FUNCTIONS or found[1] == "main":
                inside = found[1]
            counts[inside] += 1
    log.unlink()
    return counts


@pytest.fixture(scope="module", params=[GENERIC, OWN], ids=["generic", "neoverse-v1"])
def counts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, float]:
    """Of a call from C, a start and a program in a step, above those of the SDFG itself."""
    flags: tuple[str, ...] = request.param
    folder = tmp_path_factory.mktemp("generic" if flags == GENERIC else "own")
    command = (target.tool("gcc"), *flags)
    assert works(command, folder)
    build = Build(folder, command)
    stub = f"{PLAN.name}_stub"
    build.shared(f"{stub}.so", write_stub(SDFG, PROGRAM, folder), "-fvisibility=hidden")
    library = build_null_library(SDFG, folder, command)
    (folder / "host.c").write_text(c_host.source_of(PLAN), encoding="utf-8")
    options = ("-std=gnu11", "-O2", "-fno-inline-functions-called-once", f"-I{HERE}", f"-I{INCLUDE}", "-I.")
    linked = (f"./{stub}.so", "-L.", f"-l:{SONAME}", "-ldl", "-Wl,-rpath,$ORIGIN", "-o", "host")
    subprocess.run([command[0], *options, "host.c", *linked], cwd=folder, check=True)
    entry = folder / "entry"
    entry.mkdir()
    for file in (f"{stub}.so", library.name):
        (entry / file).symlink_to(folder / file)
    found = executed(folder / "host", entry, entry / library.name, str(COUNT))
    assert found.keys() >= FUNCTIONS
    per_call = {name: found[f"time_{name}"] / COUNT for name in ("bare", "memory", "stub", "bound", "step")}
    memory = per_call["memory"]
    result = {
        "C": per_call["stub"] - per_call["bare"],
        "bound from C": per_call["bound"] - memory,
        "step from C": per_call["step"] - memory,
    }
    for name, count in result.items():
        print(f"{count:.0f} instructions, {name}")
        assert count > 20  # less, and nothing was called
    return result


@pytest.mark.parametrize(("name", "limit"), [("C", 420), ("bound from C", 170), ("step from C", 155)])
def test_a_call_with_the_same_arrays(counts: Mapping[str, float], name: str, limit: float) -> None:
    assert counts[name] <= limit
