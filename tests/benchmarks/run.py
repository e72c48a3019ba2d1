"""
Measures a call through gtstub beside its peers, prints the tables and writes them to docs/performance.md and README.md.

    python -m tests.benchmarks.run [FOLDER]    FOLDER keeps what is built (build/benchmarks)

It takes some three minutes on two cores when nothing is built yet: gt4py's GTFN backend compiles for most of them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from gtstub.entries.toolchain import compiler
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_from_json, sdfg_from_json
from tests.benchmarks import c_host, fortran_host, instructions, page, peers
from tests.benchmarks.entry import build_stub
from tests.support.checkout import ROOT

BUILD_SECONDS = 240
"""After this long a peer that gt4py builds is left out."""

LOADS = 9
STUBS = 5


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GT4PY_BUILD_CACHE_DIR": str(folder),
        "GT4PY_BUILD_CACHE_LIFETIME": "persistent",
        "GT4PY_UNSTRUCTURED_HORIZONTAL_HAS_UNIT_STRIDE": "1",
        "OMP_NUM_THREADS": "1",
    }


class Run:
    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.entry = folder / "entry"
        self.environment = environment(folder)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments, str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=ROOT,
            start_new_session=True,  # so that a compiler ends with the Python that started it
        )

    def finish(self, child: subprocess.Popen[str]) -> str:
        output, errors = child.communicate()
        if child.returncode != 0:
            self.console.print(errors, markup=False)
            raise SystemExit("This child failed; its errors are above.")
        return output

    def prepare(self) -> None:
        """Builds everything; what does not depend on each other, at the same time."""
        gtfn = self.start("-m", "tests.benchmarks.prepare", "gtfn")
        begin = time.monotonic()
        (self.folder / "gtfn.pickle").unlink(missing_ok=True)
        self.finish(self.start("-m", "tests.benchmarks.prepare", "dace"))
        self.console.print("  lowered by gt4py; next: nanobind, tvm-ffi, C")
        sdfg = sdfg_from_json((self.entry / "sdfg.json").read_text(encoding="utf-8"), "sdfg.json")
        program = program_from_json((self.entry / "program.json").read_text(encoding="utf-8"), "program.json")
        self.plan = make_plan(sdfg, program)
        library = self.entry / sdfg.library
        peers.build_caller(self.folder)
        _, self.c_host = c_host.build(self.plan, self.entry, self.folder)
        self.library = library
        shutil.rmtree(self.folder / "fortran", ignore_errors=True)
        self.fortran_host = None if fortran_host.is_missing() else fortran_host.build(sdfg, program, self.folder)[1]
        peers.build_tvm_ffi(self.plan, library, self.folder)
        peers.build_nanobind(self.plan, library, self.folder)
        self.console.print("  built; next: gt4py's GTFN backend, which takes longest")
        try:
            gtfn.communicate(timeout=max(1.0, BUILD_SECONDS - (time.monotonic() - begin)))
        except subprocess.TimeoutExpired:
            os.killpg(gtfn.pid, signal.SIGKILL)
            gtfn.communicate()

    def measure(self, *flags: str) -> page.Measured:
        document = json.loads(self.finish(self.start(*flags, "-m", "tests.benchmarks.measure")))
        return page.Measured(**document)

    def loads(self) -> tuple[list[float], list[float]]:
        """Milliseconds of importing gtstub, and of loading the entry, each in a new interpreter."""
        script = str(Path(__file__).with_name("load.py"))
        times = []
        for _ in range(LOADS):
            command = [sys.executable, script, str(self.entry)]
            times.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
        return [float(imported) for imported, _ in times], [float(loaded) for _, loaded in times]

    def stubs(self) -> list[float]:
        """Seconds from two signatures to a stub library."""
        toolchain = compiler.find(self.folder)
        folder = self.folder / "stub"
        folder.mkdir(exist_ok=True)
        sdfg = sdfg_from_json((self.entry / "sdfg.json").read_text(encoding="utf-8"), "sdfg.json")
        program = program_from_json((self.entry / "program.json").read_text(encoding="utf-8"), "program.json")
        times = []
        for _ in range(STUBS):
            begin = time.perf_counter()
            build_stub(sdfg, program, folder, toolchain)
            times.append(time.perf_counter() - begin)
        return times

    def costs(self) -> tuple[dict[str, float], dict[str, int]]:
        """Instructions and cache lines; empty without valgrind."""
        if instructions.find_valgrind() is None:
            return {}, {}
        arguments = instructions.example_arguments(self.plan)
        ways: tuple[instructions.Way, ...] = ("program", "bound", "keywords")
        jobs = {way: instructions.Job(way, arguments, (self.entry,)) for way in ways}
        costs = instructions.count_per_call(self.folder / "caller.so", jobs)
        counted: dict[str, float] = {way: cost.instructions for way, cost in costs.items()}
        lines: dict[str, int] = {way: cost.lines for way, cost in costs.items()}
        lines["C"] = c_host.count_lines(self.c_host, self.entry, self.library)
        counted |= c_host.instructions(self.c_host, self.entry, self.library)
        if self.fortran_host is not None:
            counted |= fortran_host.instructions(self.fortran_host, self.entry, self.c_host, self.library)
        return counted, lines

    def opens(self) -> list[float]:
        """Milliseconds of gts_open(), each in a new process."""
        return [c_host.open_milliseconds(self.c_host, self.entry, self.library) for _ in range(LOADS)]


def main() -> None:
    console = Console()
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, console)
    begin = time.monotonic()

    def say(what: str) -> None:
        console.print(f"[dim]{time.monotonic() - begin:4.0f} s[/dim] {what}")

    say("Building: the program by gt4py's two backends, and the peers")
    run.prepare()
    say("Measuring calls under 'python -O'")
    optimised = run.measure("-O")
    say("Measuring calls under 'python'")
    plain = run.measure()
    say("Loading the program in new interpreters; generating and compiling its stub")
    imports, loads = run.loads()
    opens = run.opens()
    stubs = run.stubs()
    say("Counting instructions and cache lines with callgrind")
    counted, lines = run.costs()
    figures = page.Figures(
        optimised=optimised,
        plain=plain,
        slots=len(run.plan.slots),
        parameters=len(run.plan.parameters),
        instructions=counted,
        lines=lines,
        imports=imports,
        loads=loads,
        opens=opens,
        stubs=stubs,
        stub_bytes=(run.entry / f"{run.plan.name}_stub.so").stat().st_size,
    )
    say("Done")
    page.show(figures, console)
    page.write(figures, ROOT)
    console.print("Written to docs/performance.md and README.md.")


if __name__ == "__main__":
    main()
