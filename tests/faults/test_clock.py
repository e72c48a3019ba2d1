"""The wall clock jumps while caches are used; the monotonic ones, by which gtstub waits, do not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import invariants
from tests.faults.workshop import Ended, Workshop, environment

YEAR = 365 * 86400
CLOCKS = ({"GTS_CLOCK_STEP": 3600}, {"GTS_CLOCK_OFFSET": -YEAR}, {"GTS_CLOCK_OFFSET": YEAR, "GTS_CLOCK_STEP": YEAR})


def gtstub_command(root: Path, *arguments: str, **more: object) -> Ended:
    process = subprocess.Popen(
        [sys.executable, "-c", "from gtstub.cli.app import main; main()", "cache", *arguments],
        env=environment({"GTSTUB_CACHE_DIR": root, **more}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Ended(process)


@pytest.mark.parametrize("clock", CLOCKS)
def test_all_goes_on(workshop: Workshop, tmp_path: Path, clock: dict[str, int]) -> None:
    """Built, found, waited for, listed, verified; and nothing is pruned that was used just now."""
    wrong = {"LD_PRELOAD": workshop.clock, **clock}
    builds = tmp_path / "builds"
    root = tmp_path / "cache"
    started = [workshop.start(root, 0, 1, builds=builds, GTSTUB_BUILD_TIMEOUT=60, **wrong) for _ in range(4)]
    for ended in map(Ended, started):
        assert (ended.status, ended.errors) == (0, "")
    assert sorted(builds.read_text().split()) == ["0", "1"]
    before = invariants.entries(root)
    invariants.check(workshop, root, None, before)
    assert workshop.run(root, 0, 1, **wrong).status == 0
    for command in (["list"], ["verify"]):
        ended = gtstub_command(root, *command, **wrong)
        assert ended.status == 0, ended.errors


def test_prune_keeps_what_is_of_the_future(workshop: Workshop, tmp_path: Path) -> None:
    assert workshop.run(tmp_path, 0, 1).status == 0
    before = invariants.entries(tmp_path)
    behind = {"LD_PRELOAD": workshop.clock, "GTS_CLOCK_OFFSET": -YEAR, "GTS_CLOCK_STEP": 3600}
    ended = gtstub_command(tmp_path, "prune", "--older-than", "1d", **behind)
    assert ended.status == 0, ended.errors
    invariants.check(workshop, tmp_path, None, before)


def test_killed_builder_is_overtaken(workshop: Workshop, tmp_path: Path) -> None:
    """Also by one whose clock runs backwards."""
    killed = workshop.run(tmp_path, **workshop.injecting(tmp_path, at=6, fault="after"))
    assert killed.status == invariants.KILLED
    begin = time.time()
    ended = workshop.run(tmp_path, LD_PRELOAD=workshop.clock, GTS_CLOCK_STEP=3600)
    assert (ended.status, ended.errors) == (0, "")
    assert time.time() >= begin  # It is the clock of that process alone.
    invariants.check(workshop, tmp_path, ended)
