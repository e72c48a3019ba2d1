"""
What each rank of test_ranks.py runs: finds or builds the entries of its code path, loads them, and says what it did.

    python ranks_program.py SCENARIO   SCENARIO: JSON of `Scenario`

Entries are copies of libraries that the test has made. With 'lowering' set, that long passes before a build.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from gtstub import ranks
from gtstub.entries.building import pending
from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import open_cache


@dataclasses.dataclass(frozen=True)
class Scenario:
    results: str
    libraries: str
    keys: list[str]
    layout: tuple[int, int] | None = None
    has_mpi: bool = True
    ranks_on_a_node: int = 0  # each node has a cache of its own, under GTSTUB_CACHE_DIR; 0: all share one
    may_build: bool = True
    lowering: float = 0.0  # seconds
    killed: str = ""  # whoever builds this first is killed, once for each token
    failing: str = ""  # nobody can build this: it fails when all ranks wait for it


def main(scenario: Scenario) -> None:
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    if scenario.ranks_on_a_node:
        os.environ["GTSTUB_CACHE_DIR"] += f"/node{rank // scenario.ranks_on_a_node}"
    if scenario.has_mpi:
        from mpi4py import MPI

        from gtstub.frameworks import mpi

        layout = scenario.layout and (scenario.layout[0], scenario.layout[1])
        mpi.use_communicator(MPI.COMM_WORLD, layout)
    ours = ranks.current()
    cache = open_cache(code_path=ours.path)
    pool = ThreadPoolExecutor(4)
    built: list[str] = []

    def wait_for_files(pattern: str, count: int) -> None:
        while len(list(Path(scenario.results).glob(pattern))) < count:
            time.sleep(0.05)

    def build(key: str) -> Entry:
        if key == scenario.failing:
            wait_for_files("waiting-*", ours.size)
            raise ValueError("the compiler is not in the mood")
        with cache.private_directory(key) as private:
            entry = private / "entry"
            entry.mkdir()
            for file in Path(scenario.libraries).iterdir():
                (entry / file.name).write_bytes(file.read_bytes())
            if key == scenario.killed:
                with contextlib.suppress(FileExistsError):
                    (Path(scenario.results) / "killed").mkdir()
                    os.kill(os.getpid(), signal.SIGKILL)
            built.append(key)
            return cache.publish(entry, key, Manifest("prog", "prog_stub.so", "libprog.so"))

    def submit(key: str) -> Future[Entry]:
        time.sleep(scenario.lowering)
        return pool.submit(build_once, cache, key, lambda: build(key))

    keys = scenario.keys
    said: dict[str, object] = {"rank": ours.rank, "size": ours.size, "path": ours.path}
    said |= {"built": built, "builders": {key: ours.builder(key) for key in keys}}
    missing = [key for key in keys if cache.find(key) is None]
    errors: list[str] = []
    if missing and not scenario.may_build:
        errors = [f"{key} is missing" for key in missing]
    else:
        builds = [pending.start(cache, key, ours, lambda key=key: submit(key)) for key in missing]  # type: ignore[misc]
        (Path(scenario.results) / f"waiting-{rank}").touch()
        wait(builds)
        errors = [str(error) for one in builds if (error := one.exception()) is not None]
    said["errors"] = errors
    said["loaded"] = [key for key in keys if (artifact := cache.find(key)) and artifact.load().name == "prog"]
    (Path(scenario.results) / f"{ours.rank}.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Scenario(**json.loads(sys.argv[1])))
