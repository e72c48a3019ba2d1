"""A builder is stopped, as by a debugger or a machine that swaps, and goes on when another one has built."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults import invariants
from tests.faults.workshop import Ended, Workshop


def build_while_stopped(workshop: Workshop, tmp_path: Path, call: str, **more: object) -> list[str]:
    """Stops a builder before a call, has another one build, and continues the first; returns who has built."""
    calls = workshop.calls(tmp_path / "counted", tmp_path / "log")
    at = next(number for number, name in enumerate(calls, 1) if name.startswith(call))
    root, builds = tmp_path / "cache", tmp_path / "builds"
    stopped = workshop.start(root, builds=builds, **workshop.injecting(root, at=at, fault="stop"), **more)
    _, status = os.waitpid(stopped.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    other = workshop.run(root, builds=builds, **more)
    assert (other.status, other.errors) == (0, "")
    before = invariants.entries(root)
    stopped.send_signal(signal.SIGCONT)
    ended = Ended(stopped)
    assert (ended.status, ended.errors) == (0, "")
    invariants.check(workshop, root, ended, before)
    return builds.read_text().splitlines()


def test_stopped_between_look_and_claim(workshop: Workshop, tmp_path: Path) -> None:
    """It looks again when it has the claim: what was built meanwhile is not built twice."""
    assert build_while_stopped(workshop, tmp_path, "mkdir", GTSTUB_BUILD_TIMEOUT=60) == ["0"]


def test_stopped_before_publishing(workshop: Workshop, tmp_path: Path) -> None:
    """It gives no sign of life and is overtaken; what the other has published stays."""
    assert build_while_stopped(workshop, tmp_path, "rename") == ["0", "0"]
