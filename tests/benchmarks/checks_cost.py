"""
What debug checks cost: one look at an array, beside reading it once; and a call of a program that does nothing and
writes a field of 432 doubles, without checks and with them. Prints minima.

    python -m tests.benchmarks.checks_cost
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import gtstub
from gtstub.entries.toolchain import compiler
from gtstub.install import INCLUDE
from tests.support.checkout import ROOT
from tests.support.planting import build_plant, make, plant
from tests.support.sdfg_libraries import c_compiler

ROUNDS, CALLS = 200, 500
SOURCES = (
    "runtime/observers/debug/scan.c",
    "runtime/base/dtype.c",
    "runtime/base/json.c",
    "runtime/base/strided.c",
    "tests/benchmarks/checks.c",
)


def look(folder: Path) -> None:
    """With the flags of the runtime."""
    program = folder / "checks"
    includes = ("-I", str(INCLUDE), "-I", str(ROOT / "runtime"))
    sources = [str(ROOT / source) for source in SOURCES]
    subprocess.run([c_compiler(), "-std=c11", "-O3", *includes, *sources, "-o", str(program)], check=True)
    print("Microseconds for", subprocess.run([program], check=True, capture_output=True, text=True).stdout, sep="\n")


def call(folder: Path) -> None:
    from gtstub import _host

    program = _host.load(*build_plant(folder, compiler.find(folder / "cache", ())))
    x, out = make(np.zeros((36, 12))), make(np.zeros((36, 12)))
    best = {"": float("inf"), "nan": float("inf"), "nan; range *=-280:280": float("inf")}
    for _ in range(ROUNDS):
        for text in best:
            with gtstub.checks(text) if text else contextlib.nullcontext():
                plant(program, x, out)
                begin = time.perf_counter_ns()
                for _ in range(CALLS):
                    program(x, out, -1, 0, 0.0, offset_provider={})
                best[text] = min(best[text], (time.perf_counter_ns() - begin) / CALLS)
    print(
        "Nanoseconds of a call", *(f"{name or 'without checks'}: {value:.0f}" for name, value in best.items()), sep="\n"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        look(Path(name))
        call(Path(name))
