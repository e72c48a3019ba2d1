"""
What a call costs while it is timed or traced: a program without arguments whose SDFG does nothing, called from Python
in rounds without an observer, with a profile, and in processes with a timeline. Prints the minima, in nanoseconds.

    python -m tests.benchmarks.profile_cost
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gtstub
from tests.benchmarks.entry import build_entry
from tests.support.signatures import program, sdfg

PROCESSES, ROUNDS, CALLS = 5, 40, 2000
NAMES = ("not timed", "timed", "traced")


def measure(folder: Path, name: str) -> float:
    """The minimum in this process, which has a timeline for "traced"."""
    called = gtstub.load(folder / "entry")
    called()
    best = float("inf")
    for _ in range(ROUNDS):
        with gtstub.profile() if name == "timed" else contextlib.nullcontext():
            called()
            begin = time.perf_counter_ns()
            for _ in range(CALLS):
                called()
            best = min(best, (time.perf_counter_ns() - begin) / CALLS)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        build_entry(sdfg(), program(), folder)
        best = dict.fromkeys(NAMES, float("inf"))
        for _ in range(PROCESSES):
            for name in best:
                variables = {"GTSTUB_TRACE": str(folder / "trace.json")} if name == "traced" else {}
                command = [sys.executable, "-O", "-m", "tests.benchmarks.profile_cost", text, name]
                printed = subprocess.check_output(command, env={**os.environ, **variables})
                best[name] = min(best[name], json.loads(printed))
    print(*(f"{name}: {value:.1f} ns" for name, value in best.items()), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(Path(sys.argv[1]), sys.argv[2]))
    else:
        main()
