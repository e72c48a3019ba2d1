"""Builders are killed at random moments; `make soak` does it for longer, with more going on."""

from __future__ import annotations

import random
import time
from pathlib import Path

import invariants
from workshop import Ended, Workshop

SEED = 5
KILLS = 20


def test_kill_at_random_moments(workshop: Workshop, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    killed = 0
    for attempt in range(10 * KILLS):
        root = tmp_path / f"{attempt}"
        builders = [workshop.start(root, 0, 1), workshop.start(root, 0, 1)]
        time.sleep(moments.uniform(0.02, 0.15))
        victim, other = moments.sample(builders, 2)
        victim.kill()
        killed += Ended(victim).status == invariants.KILLED
        invariants.check_ending(Ended(other), root)
        if root.exists():
            invariants.check(workshop, root)
        if killed == KILLS:
            return
    raise AssertionError(f"only {killed} of {10 * KILLS} were killed before they had ended")
