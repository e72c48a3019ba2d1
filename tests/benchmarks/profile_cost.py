"""
What a call costs while it is timed: a program without arguments whose SDFG does nothing, called from Python in rounds
with a profile and without. Prints the minima, in nanoseconds.

    python -m tests.benchmarks.profile_cost
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import gtstub
from tests.benchmarks.entry import build_entry
from tests.support.signatures import program, sdfg

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
    print(*(f"{name}: {value:.1f} ns" for name, value in best.items()), sep="\n")


if __name__ == "__main__":
    main()
