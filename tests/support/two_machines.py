"""
A program that is built and called on two machines. As a script, for a process on either of them:

    python -m tests.support.two_machines build CACHE      builds its entries, and prints their paths
    python -m tests.support.two_machines call ENTRY...    calls each five times, and prints all results as hexadecimal
    python -m tests.support.two_machines refuse ENTRY...  prints why each is not loaded, or which calls it refuses
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gtstub
from gtstub import _host
from gtstub.entries.cache.manifest import Machine, Manifest
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain import compiler
from gtstub.errors import CacheError
from gtstub.stub.signature.model import Axis
from tests.benchmarks.entry import build_stub
from tests.support.sdfg_libraries import build_library
from tests.support.signatures import CELL, K, array, field, program, scalar, sdfg, symbol

SDFG = sdfg(
    array("fused", Axis(stride=1), Axis(), access="write"),
    array("out", Axis(stride=1), Axis(), access="write"),
    array("x", Axis(stride=1), Axis()),
    array("y", Axis(stride=1), Axis()),
    symbol("__cells", ("fused", 0, "size"), ("out", 0, "size"), ("x", 0, "size"), ("y", 0, "size")),
    symbol("__fused_K_stride", ("fused", 1, "stride")),
    symbol("__levels", ("fused", 1, "size"), ("out", 1, "size"), ("x", 1, "size"), ("y", 1, "size")),
    symbol("__out_K_stride", ("out", 1, "stride")),
    symbol("__x_K_stride", ("x", 1, "stride")),
    symbol("__y_K_stride", ("y", 1, "stride")),
    symbol("factor", dtype="float32"),
    name="mixed",
)
PROGRAM = program(
    "mixed", x=field(CELL, K), y=field(CELL, K), factor=scalar("float32"), out=field(CELL, K), fused=field(CELL, K)
)

LIBRARY = """
#include <math.h>
#define EXPORT __attribute__((visibility("default")))
EXPORT void *__dace_init_mixed(void) { static int handle; return &handle; }
EXPORT int __dace_exit_mixed(void *handle) { return handle == (void *)0; }
EXPORT void __program_mixed(void *handle, double *fused, double *out, const double *x, const double *y, int cells,
                            int fused_k, int levels, int out_k, int x_k, int y_k, float factor)
{
    (void)handle;
    for (int k = 0; k < levels; ++k)
        for (int i = 0; i < cells; ++i) {
            const double a = x[i + k * x_k], b = y[i + k * y_k];
            out[i + k * out_k] = sqrt(a) / b * (double)(factor / (float)b);
            fused[i + k * fused_k] = a * b + a;
        }
}
"""
"""`fused` has a multiplication and an addition, of which a compiler for Arm makes one instruction that rounds once."""

FLAGS = {"separate": ("-ffp-contract=off",), "fused": ("-ffp-contract=fast",)}
"""Of the entries. `fast` is what gcc and clang do in C++, as in the libraries of DaCe; the C of this one is ISO C."""

CELLS, LEVELS, CALLS = 37, 11, 5


def build(cache: Cache, key: str) -> Path:
    with cache.private_directory(key) as private:
        toolchain = compiler.find(cache.root)
        build_library(LIBRARY, private / SDFG.library, [*toolchain.compiler, "-O3", "-fno-math-errno", *FLAGS[key]])
        (private / SDFG.library).with_suffix(".c").unlink()
        stub = build_stub(SDFG, PROGRAM, private, toolchain)
        machine = Machine(toolchain.compiled_features("Release", ""), "cpu")
        return cache.publish(private, key, Manifest(PROGRAM.name, stub.name, SDFG.library, machine=machine)).path


def arguments(number: int) -> dict[str, np.ndarray | float]:
    """Those of a call: both fields are greater than 0, so that a fused result differs in the last place at most."""
    generator = np.random.Generator(np.random.PCG64(number))
    fields = {name: np.asfortranarray(generator.uniform(0.5, 2.0, (CELLS, LEVELS))) for name in ("x", "y")}
    results = {name: np.zeros((CELLS, LEVELS), order="F") for name in ("out", "fused")}
    return {**fields, "factor": 0.1 + number, **results}


def call(entry: Path) -> dict[str, bytes]:
    """The results of all calls, by name."""
    mixed = gtstub.load(entry)
    results = dict.fromkeys(("out", "fused"), b"")
    for number in range(CALLS):
        given = arguments(number)
        mixed(**given)
        for name in results:
            results[name] += np.asarray(given[name]).tobytes(order="F")
    return results


def refuse(entry: Path) -> list[str]:
    try:
        mixed = gtstub.load(entry)
    except CacheError as error:
        return [str(error), load_files(entry)]
    refused = []
    good = arguments(0)
    for name, wrong in (("x", np.zeros((CELLS, LEVELS), np.float32)), ("out", np.zeros((CELLS, LEVELS + 1)).T)):
        mixed(**good)
        try:
            mixed(**{**good, name: wrong})
        except (TypeError, ValueError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    mixed(**good)
    return refused


def load_files(entry: Path) -> str:
    """The error without a manifest, as a C host gets it."""
    try:
        _host.load(entry / f"{PROGRAM.name}_stub.so", entry / SDFG.library)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("the files were loaded")


def main(what: str, *words: str) -> None:
    paths = list(map(Path, words))
    if what == "build":
        print(*(build(Cache(paths[0]), key) for key in FLAGS), sep="\n")
    elif what == "call":
        print(*(f"{name} {result.hex()}" for path in paths for name, result in call(path).items()), sep="\n")
    else:
        print(*(line for path in paths for line in refuse(path)), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
