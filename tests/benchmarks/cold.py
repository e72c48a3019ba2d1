"""
How long after the first of many processes the last one is ready, when all start at once on an empty cache.

    python -m tests.benchmarks.cold [PROCESSES]    prints one line for each of five runs (16)

The build takes two seconds, so that all have started when it ends; then each loads the entry.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gtstub.cache import Cache, StubArtifact
from gtstub.claim import build_once

RUNS = 5
BUILD_SECONDS = 2.0
KEY = "entry"


def wait_and_load(root: Path) -> None:
    """One of the processes; prints when it was ready."""

    def build() -> StubArtifact:
        from tests.benchmarks.entry import build_entry
        from tests.signatures import SMALL_PROGRAM, SMALL_SDFG

        with (root / "builds").open("a") as builds:
            builds.write("1")
        time.sleep(BUILD_SECONDS)
        return build_entry(SMALL_SDFG, SMALL_PROGRAM, root, KEY)

    build_once(Cache(root), KEY, build).load()
    print(time.monotonic())


def main(count: int) -> None:
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as root:
            command = [sys.executable, "-m", __spec__.name, "--in", root]
            processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
            ready = sorted(float(process.communicate()[0]) for process in processes)
            builds = len((Path(root) / "builds").read_text())
            print(f"{count} processes: {builds} build, the last is ready {ready[-1] - ready[0]:.3f} s after the first")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in"]:
        wait_and_load(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
