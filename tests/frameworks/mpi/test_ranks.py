"""Many ranks, as real processes under mpirun: one build for each key in each cache."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gtstub import ranks
from tests.support.programs import needs

PROGRAM = Path(__file__).with_name("ranks_program.py")
GT4PY_PROGRAM = Path(__file__).with_name("ranks_gt4py.py")
KEYS = [f"prog-{number:032x}" for number in range(4)]
PATIENCE = 120  # seconds that no run takes
SOON = {"GTSTUB_BUILDER_GRACE": "0.1"}

needs_mpi4py = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")


@dataclasses.dataclass(frozen=True)
class Runs:
    """Runs of ranks_program.py on one cache."""

    cache: Path
    libraries: Path
    results: Path

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "GTSTUB_CACHE_DIR": str(self.cache),
            "GTSTUB_BUILDER_GRACE": str(PATIENCE),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1",
        }

    def command(self, keys: list[str], **settings: Any) -> list[str]:
        shutil.rmtree(self.results, ignore_errors=True)
        self.results.mkdir()
        scenario = {"results": str(self.results), "libraries": str(self.libraries), "keys": keys, **settings}
        return [sys.executable, str(PROGRAM), json.dumps(scenario)]

    def said(self) -> list[dict[str, Any]]:
        """What each rank that came to its end said, by rank."""
        files = sorted(self.results.glob("*.json"), key=lambda file: int(file.stem))
        return [json.loads(file.read_bytes()) for file in files]

    def mpirun(self, size: int, keys: list[str], **settings: Any) -> list[dict[str, Any]]:
        environment = settings.pop("environment", {})
        self.run(size, self.command(keys, **settings), environment)
        return self.said()

    def run(self, size: int, command: list[str], environment: dict[str, str]) -> None:
        # yield_when_idle: more ranks than cores, and MPI's own start and end spin.
        launcher = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(size)]
        run = subprocess.run(
            [*launcher, *command],
            capture_output=True, text=True, timeout=PATIENCE, env={**self.environment(), **environment},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr

    def processes(self, size: int, keys: list[str], **settings: Any) -> list[dict[str, Any]]:
        """Ranks without MPI, known by a launcher's variables. That one of them dies does not end the others."""
        command = self.command(keys, has_mpi=False, **settings)
        environment = {**self.environment(), "OMPI_COMM_WORLD_SIZE": str(size)}
        started = [
            subprocess.Popen(command, env={**environment, "OMPI_COMM_WORLD_RANK": str(rank)}) for rank in range(size)
        ]
        for process in started:
            process.wait(PATIENCE)
        return self.said()


@pytest.fixture
def runs(tmp_path: Path, libraries: Path) -> Runs:
    return Runs(tmp_path / "cache", libraries, tmp_path / "results")


def builds(said: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """By which rank each entry was built; fails where one was built twice."""
    built = [((one["path"], key), one["rank"]) for one in said for key in one["built"]]
    assert max(Counter(entry for entry, _ in built).values(), default=0) <= 1, built
    return dict(built)


def elected(said: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {(one["path"], key): rank for one in said for key, rank in one["builders"].items()}


def assert_all_loaded(said: list[dict[str, Any]], size: int) -> None:
    assert [one["rank"] for one in said] == list(range(size))
    assert {one["size"] for one in said} == {size}
    for one in said:
        assert one["errors"] == []
        assert one["loaded"] == list(one["builders"])


# --- One file system --------------------------------------------------------------------------------------------------


@needs("mpirun")
@needs_mpi4py
def test_each_key_is_built_by_its_builder(runs: Runs) -> None:
    said = runs.mpirun(9, KEYS, lowering=0.2)
    assert_all_loaded(said, 9)
    assert builds(said) == elected(said)
    assert len(builds(said)) == len(KEYS)


@needs("mpirun")
def test_without_mpi4py(runs: Runs) -> None:
    said = runs.mpirun(4, KEYS, has_mpi=False, environment={"GTSTUB_LAYOUT": "1x2"})
    assert_all_loaded(said, 4)
    assert [one["path"] for one in said] == 2 * ["FV3_BTL", "FV3_BTR"]
    assert builds(said) == elected(said)
    assert len(builds(said)) == 2 * len(KEYS)


@needs("mpirun")
@needs_mpi4py
def test_built_on_nine_ranks_run_on_more(runs: Runs, tmp_path: Path) -> None:
    said = runs.mpirun(9, KEYS[:2], layout=(3, 3))
    assert_all_loaded(said, 9)
    assert builds(said) == elected(said)
    assert len(builds(said)) == 9 * 2

    copy = dataclasses.replace(runs, cache=tmp_path / "elsewhere" / "cache")
    paths = [ranks.tile_position(rank, (3, 3)) for rank in range(9)]
    for path in paths:
        shutil.copytree(runs.cache / path, copy.cache / path)
    shutil.rmtree(runs.cache)
    for size, layout in ((12, (3, 4)), (16, (4, 4))):
        said = copy.mpirun(size, KEYS[:2], layout=layout, may_build=False)
        assert_all_loaded(said, size)
        assert builds(said) == {}
        assert {one["path"] for one in said} == set(paths)


def test_killed_builder_is_replaced(runs: Runs) -> None:
    said = runs.processes(5, KEYS[:1], killed=KEYS[0])
    killed = ranks.Ranks(0, 5).builder(KEYS[0])
    assert [one["rank"] for one in said] == [rank for rank in range(5) if rank != killed]
    assert [one["errors"] for one in said] == 4 * [[]]
    assert [one["loaded"] for one in said] == 4 * [KEYS[:1]]
    (builder,) = builds(said).values()
    assert ranks.Ranks(builder, 5).turn(KEYS[0]) == 1


def test_failed_build_is_told_to_all(runs: Runs) -> None:
    said = runs.processes(4, KEYS[:2], failing=KEYS[0])
    builder = ranks.Ranks(0, 4).builder(KEYS[0])
    reason = "the compiler is not in the mood"
    assert [one["rank"] for one in said] == list(range(4))
    for one in said:
        assert one["errors"] == [f"Rank {builder} could not build '{KEYS[0]}': {reason}"]
        assert one["loaded"] == KEYS[1:2]


# --- A file system for each node --------------------------------------------------------------------------------------


@needs("mpirun")
@needs_mpi4py
@pytest.mark.parametrize("layout", [None, (1, 3)])
def test_nodes_with_caches_of_their_own_build_for_themselves(runs: Runs, layout: tuple[int, int] | None) -> None:
    said = runs.mpirun(9, KEYS[:3], layout=layout, ranks_on_a_node=3)
    assert_all_loaded(said, 9)
    built = Counter((one["rank"] // 3, one["path"], key) for one in said for key in one["built"])
    assert built == {(one["rank"] // 3, one["path"], key): 1 for one in said for key in KEYS[:3]}


@needs("mpirun")
@needs_mpi4py
@pytest.mark.parametrize(("cache", "shares"), [("/dev/null/cache", True), ("{}/shared", True), ("{}/{}", False)])
def test_ranks_know_who_shares_their_cache(runs: Runs, tmp_path: Path, cache: str, shares: bool) -> None:
    """A cache that nobody can write to holds all there is, as in mode Run."""
    code = """if True:
        import os, sys
        from mpi4py import MPI
        from gtstub.frameworks.mpi import use_communicator
        rank = MPI.COMM_WORLD.rank
        os.environ["GTSTUB_CACHE_DIR"] = sys.argv[1].format(sys.argv[2], rank)
        assert use_communicator(MPI.COMM_WORLD).sharing == (None if sys.argv[3] == "True" else {rank})
    """
    runs.run(2, [sys.executable, "-c", code, cache, str(tmp_path), str(shares)], {})


# --- gt4py ------------------------------------------------------------------------------------------------------------


@needs("mpirun")
@needs_mpi4py
def test_gt4py_program_is_lowered_by_one_rank(runs: Runs, tmp_path: Path) -> None:
    """And compiled in a process of gt4py's, which imports what the model's script imports."""
    runs.results.mkdir()
    environment = {
        "GT4PY_BUILD_JOBS_MODE": "process",
        "GT4PY_BUILD_JOBS": "1",
        "GT4PY_BUILD_CACHE_DIR": str(tmp_path / "gt4py"),
        "GT4PY_BUILD_CACHE_LIFETIME": "persistent",
    }
    runs.run(2, [sys.executable, str(GT4PY_PROGRAM), str(runs.results)], environment)
    said = runs.said()
    assert [one["sum"] for one in said] == [90.0, 90.0]
    assert {one["cache"] for one in said} == {str(runs.cache)}
    assert sorted(one["lowered"] for one in said) == [0, 1]
