"""
Measures calls of icon4py's apply_diffusion_to_vn on a GPU: what the host needs for a call, and how long the GPU waits
for it. 'make gpu WHAT=bench' runs it on a machine with a GPU.

    python -O -m tests.benchmarks.gpu              measures, and writes the section of docs/performance.md, and the
                                                   results to $GTSTUB_GPU_RESULTS, else to build/gpu/bench
    python -m tests.benchmarks.gpu --write FILE    writes the section from the gpu.json of another machine
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gt4py.next import common
from gt4py.next.program_processors.runners.gtfn import run_gtfn_gpu
from icon4py.model.common import dimension as dims
from rich.console import Console

from gtstub.entries.cache.entry import Entry
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.internals import make_dace_backend
from tests.benchmarks import fields, gpu_host, page, peers
from tests.benchmarks.measure import KEYWORDS, load_module
from tests.benchmarks.prepare import _compilable as compilable
from tests.gpu.device import arrays
from tests.support import hosting
from tests.support.checkout import ROOT
from tests.support.graphs import Captured

BUILD_SECONDS = 240
ROUNDS = 40
CALLS = 50
"""Of a round. CUDA lets some 1000 launches wait; a call that finds more waits for them."""

STEP = 20
"""Calls that follow each other."""

SIZES = {
    "27 edges, 10 levels": fields.SIZES,
    "120,000 edges, 65 levels": {**fields.SIZES, dims.EdgeDim: 120_000, dims.VertexDim: 40_000, dims.KDim: 65},
}
BEGIN, END = "<!-- gpu -->", "<!-- /gpu -->"

CALLED = {
    "launches": "the same number of empty kernels, launched from a C loop",
    "bare C": "the SDFG itself, from a C loop",
    "gtstub": "**gtstub**, same fields",
    "gt4py dace": "gt4py's DaCe backend, same fields",
    "gt4py gtfn": "gt4py's GTFN backend, same fields, its wait for the GPU included",
    "graph": "a graph of 20 calls, for each of them",
}
STEPPED = {
    "queued": "queued before the GPU begins: its work alone",
    "bare C": "the SDFG itself, from a C loop",
    "gtstub": "**gtstub**, same fields",
    "graph": "a graph of the 20 calls",
    "gt4py dace": "gt4py's DaCe backend, same fields",
}


@dataclasses.dataclass(frozen=True)
class Figures:
    host: dict[str, list[float]]
    """Nanoseconds of the host for a call, by way of calling: one number for each round."""
    step: dict[str, dict[str, list[float]]]
    """Microseconds of the GPU from the beginning of STEP calls to their end, by size and way of calling."""
    kernels: int
    """Of a call."""
    skipped: dict[str, str]
    machine: list[str]


# --- Builds -----------------------------------------------------------------------------------------------------------

BUILDS: Mapping[str, Callable[[], Any]] = {
    "gtstub": lambda: _backend(make_backend),
    "dace": lambda: _backend(make_dace_backend),
    "gtfn": lambda: run_gtfn_gpu,
}


def _backend(make: Callable[..., Any]) -> Any:
    return make(gpu=True, auto_optimize=True, unstructured_horizontal_has_unit_stride=True)


def build(name: str, folder: Path) -> None:
    backend = BUILDS[name]()
    artifact = backend.executor(compilable(backend))
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(artifact))


def build_all(names: list[str], folder: Path) -> dict[str, str]:
    """Builds at the same time, each in a process of its own; returns the last lines of those that failed."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--build"]
    environment = {**os.environ, "GT4PY_UNSTRUCTURED_HORIZONTAL_HAS_UNIT_STRIDE": "1"}
    failed, children = {}, {}
    for name in names:
        (folder / f"{name}.pickle").unlink(missing_ok=True)
        log = (folder / f"{name}.log").open("w")
        line = [*command, name, str(folder)]
        children[name] = subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=ROOT)
    end = time.monotonic() + BUILD_SECONDS
    for name, child in children.items():
        try:
            code = child.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            failed[name] = f"it was not built in {BUILD_SECONDS} s"
            continue
        if code != 0:
            lines = (folder / f"{name}.log").read_text(encoding="utf-8").strip().splitlines() or ["no output"]
            failed[name] = f"it could not be built: {lines[-1]}"
    return failed


# --- Measurements -----------------------------------------------------------------------------------------------------


class Bench:
    """Calls with fields of one size."""

    def __init__(self, gpu: arrays.Gpu, folder: Path, sizes: Mapping[Any, int]) -> None:
        self.gpu = gpu
        self.folder = folder
        self.sizes = sizes
        self.stream = gpu.stream()
        self.caller = load_module("caller", peers.build_caller(folder))
        random = np.random.default_rng(1)
        made = (self._field(name, random) for name in fields.FIELDS)
        ends = {"horizontal_end": sizes[dims.EdgeDim], "vertical_end": sizes[dims.KDim]}
        self.arguments = (*made, *{**fields.SCALARS, **ends}.values(), self._provider(random))
        self.ways: dict[str, Callable[[int], object]] = {}
        """Each makes so many calls on the stream, and waits for none."""

    def _field(self, name: str, random: np.random.Generator) -> Any:
        on = {dim: (0, self.sizes[dim]) for dim in fields.FIELDS[name]}
        array = self.gpu.array(np.asfortranarray(random.uniform(0.5, 1.5, [size for _, size in on.values()])))
        if not self.gpu.runs_kernels:
            return hosting.Field(hosting.domain({dim.value: bounds for dim, bounds in on.items()}), array)
        return common._field(array, domain=common.domain(on))

    def _provider(self, random: np.random.Generator) -> Any:
        table = fields.offset_provider()["E2C2V"]
        shape = (self.sizes[dims.EdgeDim], table.ndarray.shape[1])
        indices = random.integers(self.sizes[dims.VertexDim], size=shape, dtype=table.ndarray.dtype)
        array = self.gpu.array(np.asfortranarray(indices))
        if not self.gpu.runs_kernels:
            return {"E2C2V": array}
        on = common.domain({dims.EdgeDim: (0, shape[0]), dims.E2C2VDim: (0, shape[1])})
        return {"E2C2V": common._connectivity(array, codomain=table.codomain, domain=on, skip_value=None)}

    def load(self, name: str) -> Any:
        return pickle.loads((self.folder / f"{name}.pickle").read_bytes())

    def add(self, name: str, program: Any) -> None:
        self.ways[name] = lambda count: self.caller.repeat(program, [self.arguments], KEYWORDS, count)
        self.ways[name](2)
        self.wait()

    def add_gtstub(self) -> int:
        """Also the SDFG from C, and the graph; returns how many kernels a call launches."""
        entry: Entry = self.load("gtstub")
        program: Any = make_backend(gpu=True).load_artifact(entry)  # type: ignore[union-attr]
        program.stream = self.stream
        self.add("gtstub", program)
        host = gpu_host.build(entry, self.arguments, self.folder)
        address = self.gpu.address(self.stream)
        self.ways["bare C"] = lambda count: host.call(address, count)
        self.ways["bare C"](2)
        self.wait()
        kernels = host.kernels(address)
        self.ways["launches"] = lambda count: host.launch(address, kernels * count)
        self.ways["launches"](2)
        program.stream = "current"
        call = program.bind(*self.arguments[:-1], offset_provider=self.arguments[-1])
        with Captured() as self.graph:
            for _ in range(STEP):
                call()
        program.stream = self.stream
        self.graph(address)
        self.wait()
        return kernels

    def add_gt4py(self, failed: Mapping[str, str]) -> None:
        for name in ("dace", "gtfn"):
            if name not in failed and self.gpu.runs_kernels:
                self.add(f"gt4py {name}", self.load(name).load())

    def wait(self) -> None:
        self.gpu.wait(self.stream)
        self.gpu.wait(None)

    def host_nanoseconds(self) -> dict[str, list[float]]:
        ways: dict[str, tuple[Callable[[int], object], int]] = {name: (way, CALLS) for name, way in self.ways.items()}
        found: dict[str, list[float]] = {name: [] for name in (*ways, "graph")}
        for _, (name, (way, count)) in itertools.product(range(ROUNDS), ways.items()):
            self.wait()
            begin = time.perf_counter_ns()
            way(count)
            found[name].append((time.perf_counter_ns() - begin) / count)
        for _ in range(ROUNDS):
            self.wait()
            begin = time.perf_counter_ns()
            self.graph(self.gpu.address(self.stream))
            found["graph"].append((time.perf_counter_ns() - begin) / STEP)
        self.wait()
        return found

    def step_microseconds(self) -> dict[str, list[float]]:
        """gt4py's GTFN backend is left out: it waits at the end of each call."""
        ways = {name: way for name, way in self.ways.items() if name in STEPPED}
        ways["graph"] = lambda _: self.graph(self.gpu.address(self.stream))
        found: dict[str, list[float]] = {name: [] for name in ("queued", *ways)}
        for _ in range(ROUNDS):
            gate = self.gpu.gate(self.stream)
            found["queued"].append(self._elapsed(self.ways["gtstub"], self.stream, gate))
            for name, way in ways.items():
                found[name].append(self._elapsed(way, None if name.startswith("gt4py") else self.stream))
        return found

    def _elapsed(self, way: Callable[[int], object], stream: Any, gate: arrays.Gate | None = None) -> float:
        """The stream is idle, or waits at the gate, which is opened after the calls."""
        begin = self.gpu.event(stream)
        way(STEP)
        end = self.gpu.event(stream)
        if gate is not None:
            gate.open()
        self.wait()
        return 1e3 * self.gpu.milliseconds(begin, end)


def measure(folder: Path) -> Figures:
    gpu = arrays.find()  # before any library that needs a CUDA runtime
    failed = build_all(list(BUILDS) if gpu.runs_kernels else ["gtstub"], folder)
    if "gtstub" in failed:
        raise SystemExit(f"gtstub: {failed['gtstub']}; see {folder}/gtstub.log")
    gc.disable()
    host: dict[str, list[float]] = {}
    step, kernels = {}, 0
    for i, (size, sizes) in enumerate(SIZES.items()):
        own = folder / f"size-{i}"
        own.mkdir(exist_ok=True)
        for name in BUILDS:
            if (folder / f"{name}.pickle").exists():
                (own / f"{name}.pickle").write_bytes((folder / f"{name}.pickle").read_bytes())
        bench = Bench(gpu, own, sizes)
        kernels = bench.add_gtstub()
        bench.add_gt4py(failed)
        host = host or bench.host_nanoseconds()
        step[size] = bench.step_microseconds()
    return Figures(host, step, kernels, failed, machine())


def machine() -> list[str]:
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        found = "no GPU: the stand-in for the CUDA runtime"
    return [found, *page.describe_machine()]


# --- The page ---------------------------------------------------------------------------------------------------------


def goals(figures: Figures) -> list[page.Goal]:
    least = {name: min(times) for name, times in figures.host.items()}
    found = [
        page.Goal(
            "the host's time for a call, minus that of the SDFG from a C loop",
            300,
            max(0.0, least["gtstub"] - least["bare C"]),
            "ns",
        )
    ]
    for size, times in figures.step.items():
        idle = {name: _idle(times, name) for name in ("gtstub", "bare C")}
        found.append(
            page.Goal(
                f"the GPU's idle time for each of 20 calls, {size}, minus that with the SDFG from a C loop",
                0.3,
                max(0.0, idle["gtstub"] - idle["bare C"]),
                "µs",
            )
        )
    return found


def _idle(times: Mapping[str, list[float]], name: str) -> float:
    """Microseconds for each call, of medians: the work itself varies."""
    return max(0.0, statistics.median(times[name]) - statistics.median(times["queued"])) / STEP


def section(figures: Figures) -> str:
    def row(label: str, values: list[float], scale: float = 1.0) -> tuple[str, str, str]:
        return label, f"{min(values) * scale:.3f}", f"{statistics.median(values) * scale:.3f}"

    host = [row(label, figures.host[name], 1e-3) for name, label in CALLED.items() if name in figures.host]
    goal = page.markdown(page.GOALS_HEAD, [each.cells() for each in goals(figures)])
    parts = [
        f"A call launches {figures.kernels} kernel{'s' if figures.kernels != 1 else ''}.",
        goal,
        f"The host's time for a call that returns when its work is on the stream, {next(iter(figures.step))}:",
        page.markdown(("call", "µs, minimum", "median"), host),
    ]
    for size, times in figures.step.items():
        rows = [
            (*row(label, times[name]), f"{_idle(times, name):.3f}") for name, label in STEPPED.items() if name in times
        ]
        head = ("20 calls", "µs on the GPU, minimum", "median", "idle for each call, µs")
        parts += [f"20 calls one after another, {size}:", page.markdown(head, rows)]
    parts += [f"Not measured: {name}: {reason}" for name, reason in figures.skipped.items()]
    return "\n\n".join([*parts, "Measured on:", "\n".join(f"- {line}" for line in figures.machine)])


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--build", name, folder]:
            build(name, Path(folder))
        case ["--write", file]:
            figures = Figures(**json.loads(Path(file).read_text(encoding="utf-8")))
            page.replace(ROOT / "docs" / "performance.md", section(figures), BEGIN, END)
        case []:
            if reason := arrays.missing():
                raise SystemExit(f"{reason} 'make gpu WHAT=bench' runs this on a machine with a GPU.")
            folder = ROOT / "build" / "gpu" / "bench"
            folder.mkdir(parents=True, exist_ok=True)
            figures = measure(folder)
            if os.environ.get("GTSTUB_GPU_STAND_IN") is None:
                page.replace(ROOT / "docs" / "performance.md", section(figures), BEGIN, END)
            results = Path(os.environ.get("GTSTUB_GPU_RESULTS", folder))
            (results / "gpu.json").write_text(json.dumps(dataclasses.asdict(figures), indent=1), encoding="utf-8")
            (results / "gpu.md").write_text(section(figures) + "\n", encoding="utf-8")
            Console().print(section(figures), markup=False)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
