"""
What a call costs while it is timed: a program without arguments whose SDFG does nothing, called from Python and timed in
rounds with a profile and without. Prints the minima, in nanoseconds.

    python -m tests.benchmarks.profile_cost
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import gtstub
from tests.benchmarks.entry import build_entry
from tests.signatures import program, sdfg

ROUNDS, CALLS = 200, 2000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        called = gtstub.load(build_entry(sdfg(), program(), Path(folder)).path)
        called()
        best = {"not timed": float("inf"), "timed": float("inf")}
        for _ in range(ROUNDS):
            for name in best:
                with gtstub.profile() if name == "timed" else contextlib.nullcontext():
                    called()
                    begin = time.perf_counter_ns()
                    for _ in range(CALLS):
                        called()
                    best[name] = min(best[name], (time.perf_counter_ns() - begin) / CALLS)
        clock = min(_clock() for _ in range(ROUNDS))
    print(*(f"{name}: {value:.1f} ns" for name, value in best.items()), f"time.monotonic_ns(): {clock:.1f} ns", sep="\n")


def _clock() -> float:
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        time.monotonic_ns()
    return (time.perf_counter_ns() - begin) / CALLS


if __name__ == "__main__":
    main()
