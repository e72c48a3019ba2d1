"""
Measures starts of processes and loads of programs beside gt4py's own, and writes the table to docs/performance.md.

    python -m tests.benchmarks.starts [FOLDER]    FOLDER keeps what is built (build/starts)

It takes some three minutes on two cores. Processes of all ways are started in turn, so that whatever else the machine
does hits them alike.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.benchmarks import page

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
MODEL, LOADS = str(HERE / "start_model.py"), str(HERE / "start_loads.py")

BEGIN, END = "<!-- starts -->", "<!-- /starts -->"
ROUNDS = 7
PROGRAMS = 64
INCUMBENT_PROGRAMS = 8
"""gt4py takes long enough for each."""
COLD_PROCESSES = 16
COLD_ROUNDS = 3


def environment(cache: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GTSTUB_", "GT4PY_"))}
    return {
        **kept,
        "GT4PY_BUILD_CACHE_DIR": str(cache),
        "GT4PY_BUILD_CACHE_LIFETIME": "persistent",
        "GTSTUB_CACHE_DIR": str(cache / "gtstub"),
        "PYTHONOPTIMIZE": "1",  # as gt4py recommends
        "OMP_NUM_THREADS": "1",
    }


def run(cache: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{done.stderr}\n{command} failed; its errors are above.")
    return done.stdout


def entry_of(cache: Path) -> Path:
    (path,) = (path for path in (cache / "gtstub").glob("relax-*") if (path / "manifest.json").exists())
    return path


# --- Warm starts ------------------------------------------------------------------------------------------------------


def measure_starts(cache: Path) -> dict[str, list[float]]:
    """Seconds of whole processes: to the first result, or to the end of an import."""
    commands = {
        "import": ("-c", "import gt4py.next"),
        "gtstub": (MODEL, "gtstub"),
        "incumbent": (MODEL, "incumbent"),
        "entry": (LOADS, "first", str(entry_of(cache))),
        "numpy": ("-c", "import numpy"),
    }
    times: dict[str, list[float]] = {way: [] for way in commands}
    for _ in range(ROUNDS):
        for way, command in commands.items():
            begin = time.perf_counter()
            run(cache, *command)
            times[way].append(time.perf_counter() - begin)
    return times


# --- Many programs ----------------------------------------------------------------------------------------------------


def measure_loads(cache: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of each load: through gtstub, and through gt4py."""
    copies = cache / "copies"
    shutil.rmtree(copies, ignore_errors=True)
    entries = [copies / f"{number:02d}" for number in range(PROGRAMS)]
    for path in entries:
        shutil.copytree(entry_of(cache), path)
    library = Path(run(cache, MODEL, "artifact", str(cache)).splitlines()[-1])
    libraries = []
    for number in range(INCUMBENT_PROGRAMS):
        folder = copies / f"incumbent-{number}"
        shutil.copytree(library.parent, folder)
        libraries.append(str(folder / library.name))
    ours = run(cache, LOADS, "gtstub", *map(str, entries))
    theirs = run(cache, LOADS, "incumbent", str(cache / "artifact.pickle"), *libraries)
    return [float(line) for line in ours.split()], [float(line) for line in theirs.split()]


# --- Cold starts ------------------------------------------------------------------------------------------------------


def measure_cold(folder: Path) -> tuple[int, float]:
    """How many entries many processes have built that start at once, and seconds from the first result to the last."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variables = {**environment(folder), "GT4PY_BUILD_JOBS_MODE": "serial"}
    log = folder / "compilers"
    spies = folder / "spies"
    spies.mkdir()
    for name in ("c++", "g++"):
        if (real := shutil.which(name)) is not None:
            spy = spies / name
            # A build compiles one file of C++; what else is asked of the compiler is for CMake.
            spy.write_text(f'#!/bin/sh\ncase "$*" in *" -c "*relax.cpp) echo >>"{log}";; esac\nexec "{real}" "$@"\n')
            spy.chmod(0o755)
    variables["PATH"] = f"{spies}:{os.environ['PATH']}"
    processes = [
        subprocess.Popen(
            [sys.executable, MODEL, "cold", str(folder), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=variables,
        )
        for number in range(COLD_PROCESSES)
    ]
    while len(list(folder.glob("ready-*"))) < COLD_PROCESSES:
        if any(process.poll() for process in processes):
            raise SystemExit("A process of the cold start failed.")
        time.sleep(0.05)
    (folder / "go").touch()
    results = [process.communicate() for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit("\n".join(errors for _, errors in results))
    ready = sorted(float(output.split()[-1]) for output, _ in results)
    builds = len(log.read_text().splitlines()) if log.exists() else 0
    return builds, ready[-1] - ready[0]


# --- The page ---------------------------------------------------------------------------------------------------------


def least_and_median(times: Sequence[float], unit: str, scale: float = 1.0) -> str:
    return f"{min(times) * scale:.3g} {unit} (median {statistics.median(times) * scale:.3g})"


def main() -> None:
    console = Console()
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "starts"
    warm = folder / "warm"
    warm.mkdir(parents=True, exist_ok=True)
    console.print("Building one program through gtstub and through gt4py's DaCe backend")
    run(warm, MODEL, "gtstub")
    run(warm, MODEL, "incumbent")
    console.print(f"Warm starts, {ROUNDS} of each kind in turn")
    starts = measure_starts(warm)
    console.print(f"Loading {PROGRAMS} programs in one process")
    ours, theirs = measure_loads(warm)
    console.print(f"{COLD_PROCESSES} processes at once on an empty cache, {COLD_ROUNDS} times")
    cold = [measure_cold(folder / "cold") for _ in range(COLD_ROUNDS)]
    ratio = min(starts["gtstub"]) / min(starts["import"])
    goals = [
        page.Goal(
            "script with one gt4py program, from process start to first result, divided by `import gt4py.next`",
            1.3,
            ratio,
            "",
        ),
        page.Goal("the same from a cache entry, without gt4py (imports numpy)", 0.15, min(starts["entry"]), "s"),
        page.Goal(f"load of one of {PROGRAMS} programs in one process, mean", 3.0, statistics.mean(ours), "ms"),
        page.Goal("the same, the slowest load, which is the first", 3.0, max(ours), "ms"),
        page.Goal(
            f"{COLD_PROCESSES} cold processes, one key: number of builds", 1, max(builds for builds, _ in cold), ""
        ),
        page.Goal(
            "the same: time between the first and the last ready process", 0.5, max(after for _, after in cold), "s"
        ),
    ]
    rows = [
        ("`python -c 'import gt4py.next'`", least_and_median(starts["import"], "s")),
        ("`gtstub.compile()` in a script, entry in the cache", least_and_median(starts["gtstub"], "s")),
        ("gt4py's DaCe backend in the same script, program in its cache", least_and_median(starts["incumbent"], "s")),
        ("`gtstub.load()` and a call on numpy arrays", least_and_median(starts["entry"], "s")),
        ("`python -c 'import numpy'`", least_and_median(starts["numpy"], "s")),
        (f"`gtstub.load()`, {PROGRAMS} programs in one process, per program", least_and_median(ours, "ms")),
        (
            f"gt4py's `load()`, {INCUMBENT_PROGRAMS} programs, per program, without imports",
            least_and_median(theirs, "ms"),
        ),
    ]
    machine = "\n".join(f"- {line}" for line in page.describe_machine())
    sections = [
        "The minimum decides whether a goal is met; for cold starts, the worst value.",
        page.markdown(("figure", "goal", "measured", ""), [goal.cells() for goal in goals]),
        page.markdown(("what", "minimum"), rows),
        f"Measured on:\n\n{machine}",
    ]
    for goal in goals:
        console.print(*goal.cells(), sep=" | ", markup=False)
    for row in rows:
        console.print(*row, sep=" | ", markup=False)
    page.replace(ROOT / "docs" / "performance.md", "\n\n".join(sections), BEGIN, END)
    console.print("Written to docs/performance.md.")


if __name__ == "__main__":
    main()
