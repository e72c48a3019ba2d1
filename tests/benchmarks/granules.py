"""
What a host without Python pays for a granule itself: opening, binding, swapping, and a step whose SDFGs do nothing.

    python -m tests.benchmarks.granules      twenty programs and a hundred arrays of the host, and as many kept ones
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import gtstub
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain.compiler import find
from gtstub.install import INCLUDE, RUNTIME
from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from gtstub.stub.signature.model import Axis
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import K, array, field, program, sdfg
from tests.support.stubs import build_stub

PROGRAMS, ARRAYS = 20, 5
SIZE = 64
NAMES = "abcde"


def make_entry(cache: Cache, number: int) -> Entry:
    """The entry of a program that takes ARRAYS arrays of the host and as many others, and does nothing."""
    name = f"program_{number}"
    names = [f"{kind}{letter}" for kind in ("host_", "kept_") for letter in NAMES[:ARRAYS]]
    of_sdfg = sdfg(
        *(array(each, Axis(start=0, stride=1, size=SIZE), access="read") for each in sorted(names)), name=name
    )
    of_program = program(name, **{each: field(K) for each in names})
    with cache.private_directory(f"{name}-{number:032x}") as private:
        folder = private / "entry"
        folder.mkdir()
        toolchain = find(cache.root)
        stub = build_stub(of_sdfg, of_program, folder, toolchain)
        library = build_null_library(of_sdfg, folder)
        (folder / "sdfg.json").write_text(sdfg_to_json(of_sdfg), encoding="utf-8")
        (folder / "program.json").write_text(program_to_json(of_program), encoding="utf-8")
        return cache.publish(folder, f"{name}-{number:032x}", Manifest(name, stub.name, library.name))


def export(folder: Path) -> Path:
    """A granule with one step, in which each program has arrays of its own."""
    cache = Cache(folder / "cache")
    calls, arguments = [], {}
    for number in range(PROGRAMS):
        arrays = {letter: np.zeros(SIZE) for letter in NAMES[:ARRAYS]}
        arguments |= {f"{letter}{number}": each for letter, each in arrays.items()}
        given = {f"host_{letter}": each for letter, each in arrays.items()}
        given |= {f"kept_{letter}": np.random.default_rng(number).random(SIZE) for letter in NAMES[:ARRAYS]}
        calls.append(make_entry(cache, number).load().bind(**given))
    granule = gtstub.Granule("many", steps={"run": gtstub.Step(calls)}, arguments=arguments)
    return granule.export(folder / "granule")


def measure(folder: Path) -> dict[str, float]:
    """Nanoseconds of the first opening; of opening again, binding, a step and a swap, each the least of many."""
    granule = export(folder)
    host = folder / "granule_host"
    sources = [Path(__file__).with_name("granule_host.c"), granule / "many_granule.c"]
    runtime = ["-I", INCLUDE, "-I", granule, "-L", RUNTIME.parent, f"-l:{RUNTIME.name}", f"-Wl,-rpath,{RUNTIME.parent}"]
    command = ["gcc", "-std=c11", "-O2", "-o", host, *sources, *runtime]
    subprocess.run(list(map(str, command)), check=True)
    line = [str(host), str(granule), str(PROGRAMS * ARRAYS)]
    return dict(json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        times = measure(Path(folder))
    count = PROGRAMS * ARRAYS
    print(f"{PROGRAMS} programs, {count} arrays of the host, {count} kept:")
    print(f"  open  {times['first'] / 1e6:8.2f} ms the first time, {times['open'] / 1e6:.2f} ms again")
    print(f"  bind  {times['bind'] / 1e3:8.2f} us")
    print(f"  swap  {times['swap'] / 1e3:8.2f} us")
    print(f"  step  {times['step'] / PROGRAMS:8.2f} ns for each program, whose SDFG does nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
