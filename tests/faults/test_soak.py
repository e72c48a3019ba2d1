"""A short `make soak`: processes that use one cache are killed at random moments, and their system calls fail."""

from __future__ import annotations

from pathlib import Path

from tests.faults.stress import Stress
from tests.faults.workshop import Workshop

SEED = 5
KILLS = 20


def test_kills_at_random_moments(workshop: Workshop, tmp_path: Path) -> None:
    stress = Stress(workshop, tmp_path / "stress", SEED)
    try:
        stress.run(lambda counts: counts["kills at a moment"] >= KILLS, lambda _: None)
    finally:
        stress.stop()
    assert stress.counts["build ok"] > 0
    assert stress.counts["load ok"] > 0
