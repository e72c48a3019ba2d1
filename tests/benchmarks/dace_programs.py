"""
Measures calls of DaCe's own programs: through gtstub, as DaCe and ctypes make them, and of their SDFGs from C. The
programs assign one number. Writes a section of docs/performance.md.

    python -O -m tests.benchmarks.dace_programs
"""

# No annotation is a text here: DaCe looks at the types.
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dace
import numpy as np
from rich.console import Console

import gtstub
from tests.benchmarks import page, peers
from tests.benchmarks.measure import load_module
from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import c_compiler

BEGIN, END = "<!-- dace -->", "<!-- /dace -->"

ROUNDS, ROUND_SECONDS = 40, 0.002

SHAPE = (6, 6, 3)

BARE, OURS, OF_NDSL = "the SDFG itself, from a C loop", "**gtstub**", "gtstub, orchestrated method"

N, M = (dace.symbol(name) for name in "NM")


@gtstub.program
@dace.program
def three(a: dace.float64[N], b: dace.float64[N], c: dace.float64[N]):
    a[0] = b[0] + c[0]


NAMES = [f"x{number}" for number in range(20)]

SOURCE = f"""
@gtstub.program
@dace.program
def twenty({", ".join(f"{name}: dace.float64[N]" for name in NAMES)}):
    x0[0] = {" + ".join(f"{name}[0]" for name in NAMES[1:])}


class Step:
    def __init__(self, orchestrate, configuration, quantity):
        self.w, self.z = quantity(1.0), quantity(2.0)
        orchestrate(obj=self, config=configuration)

    def __call__(self, {", ".join(NAMES[:10])}):
        x0[0, 0, 0] = {" + ".join(f"{name}[0, 0, 0]" for name in NAMES[1:10])} + self.w[0, 0, 0] + self.z[0, 0, 0]
"""


def read_source(folder: Path) -> Any:
    """The programs with many arguments, which DaCe must find in a file."""
    file = folder / "many.py"
    file.write_text("import dace\nimport gtstub\n\nN = dace.symbol('N')\n" + SOURCE, encoding="utf-8")
    return load_module("many", file)


def c_loop(folder: Path, library: Path, name: str, slots: list[int]) -> Callable[[int], float]:
    """Calls the SDFG with constants; numbers and addresses are passed in the same registers on this machine."""
    source = folder / f"{name}_loop.c"
    source.write_text(
        "#include <stdint.h>\n#include <time.h>\n"
        "double loop(void (*program)(), void *handle, long count)\n{\n"
        "    struct timespec a, b;\n    clock_gettime(CLOCK_MONOTONIC, &a);\n"
        "    for (long i = 0; i < count; ++i)\n"
        f"        program(handle, {', '.join(f'{slot}l' for slot in slots)});\n"
        "    clock_gettime(CLOCK_MONOTONIC, &b);\n"
        "    return (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);\n}\n"
    )
    made = source.with_suffix(".so")
    subprocess.run([c_compiler(), "-O2", "-shared", "-fPIC", "-o", made, source], check=True)
    loop = ctypes.CDLL(str(made)).loop
    loop.restype = ctypes.c_double
    loop.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    loaded = ctypes.CDLL(str(library))
    init = getattr(loaded, f"__dace_init_{name}")
    init.restype = ctypes.c_void_p
    handle = init(*map(ctypes.c_long, slots[-1:]))
    address = ctypes.cast(getattr(loaded, f"__program_{name}"), ctypes.c_void_p)
    return lambda count: float(loop(address, handle, count))


def ctypes_loop(library: Path, name: str, slots: list[int]) -> Callable[[int], float]:
    """The cheapest call by ctypes: its arguments are made before."""
    loaded = ctypes.CDLL(str(library))
    init, program = getattr(loaded, f"__dace_init_{name}"), getattr(loaded, f"__program_{name}")
    init.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(init(*map(ctypes.c_long, slots[-1:])))
    arguments = [handle, *map(ctypes.c_long, slots)]
    return in_python(lambda: program(*arguments))


def in_python(call: Callable[[], object]) -> Callable[[int], float]:
    def run(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - begin

    return run


def measure(ways: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Nanoseconds of a call in each round, all ways in turn."""
    counts = {}
    for name, run in ways.items():
        run(3)
        counts[name] = max(2, int(ROUND_SECONDS * 20 / run(20)))
    found: dict[str, list[float]] = {name: [] for name in ways}
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for name, run in ways.items():
            found[name].append(run(counts[name]) / counts[name] * 1e9)
    gc.enable()
    return found


def ways_of(folder: Path, caller: Any, program: Any, count: int) -> dict[str, Callable[[int], float]]:
    arrays = [np.ones(8) for _ in range(count)]
    program(*arrays)
    (manifest,) = (Path(os.environ["GTSTUB_CACHE_DIR"])).glob(f"*{program.__name__}*/manifest.json")
    entry = manifest.parent
    name = entry.name[:-33]
    library = entry / f"lib{name}.so"
    slots = [*(array.ctypes.data for array in arrays), 8]
    compiled = program.dace_program.compile()
    keywords = dict(zip(compiled.sdfg.arg_names, arrays, strict=True))
    argv, initial = compiled.construct_arguments(**keywords, N=8)
    compiled(**keywords, N=8)
    return {
        BARE: c_loop(folder, library, name, slots),
        OURS: lambda count: float(caller.repeat(program, [tuple(arrays)], (), count)),
        "`CompiledSDFG.fast_call`, arguments made before": in_python(lambda: compiled.fast_call(argv, initial)),
        "ctypes, arguments made before": ctypes_loop(library, name, slots),
        "`CompiledSDFG.__call__`": in_python(lambda: compiled(**keywords, N=8)),
        "DaCe's own call of the program": in_python(lambda: program.dace_program(*arrays)),
    }


def ways_of_ndsl(caller: Any, step: Any) -> dict[str, Callable[[int], float]]:
    """A method of ten Quantities that reads two of its object, with the tests' stand-in for NDSL."""
    sys.path.insert(0, str(ROOT / "tests" / "support" / "ndsl_stand_in"))
    from ndsl.dsl.dace.dace_config import DaceConfig, DaCeOrchestration
    from ndsl.quantity import Quantity

    from gtstub.frameworks.ndsl import orchestrate

    def quantity(value: float) -> Any:
        return Quantity(np.full(SHAPE, value), ("x", "y", "z"), "m")

    quantities = tuple(quantity(1.0) for _ in range(10))
    made = step(orchestrate, DaceConfig(None, "numpy", DaCeOrchestration.BuildAndRun, False), quantity)
    return {OF_NDSL: lambda count: float(caller.repeat(made, [quantities], (), count))}


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        os.chdir(folder)
        os.environ["GTSTUB_CACHE_DIR"] = str(folder / "cache")
        dace.Config.set("default_build_folder", value=str(folder / "dacecache"))
        caller = load_module("caller", peers.build_caller(folder))
        many = read_source(folder)
        console.print("Building the programs, by gtstub and by DaCe")
        ways = {
            "3": ways_of(folder, caller, three, 3),
            "20": ways_of(folder, caller, many.twenty, 20),
            "NDSL": ways_of_ndsl(caller, many.Step),
        }
        console.print("Measuring")
        found = {name: measure(each) for name, each in ways.items()}
    bare = {name: min(found[name][BARE]) for name in ("3", "20")}
    goals = [
        page.Goal(f"{name} arrays of a symbolic size, minus the SDFG", goal, min(found[name][OURS]) - bare[name], "ns")
        for name, goal in (("3", 90), ("20", 140))
    ]
    goals.append(
        page.Goal(
            "an orchestrated method of ten Quantities and two attributes, whole call",
            1500,
            min(found["NDSL"][OF_NDSL]),
            "ns",
        )
    )
    rows = [(way, *(f"{page.number(min(found[name][way]))}" for name in ("3", "20"))) for way in found["3"]]
    machine = "\n".join(f"- {line}" for line in page.describe_machine())
    sections = [
        page.markdown(("figure", "goal", "measured", ""), [goal.cells() for goal in goals]),
        f"Nanoseconds per call, minima:\n\n{page.markdown(('call', '3 arrays', '20 arrays'), rows)}",
        f"Measured on:\n\n{machine}",
    ]
    for section in sections:
        console.print(section, markup=False)
    page.replace(ROOT / "docs" / "performance.md", "\n\n".join(sections), BEGIN, END)
    console.print("Written to docs/performance.md.")


if __name__ == "__main__":
    main()
