"""DaCe programs in several processes: what is built, found, refused, profiled, recorded, and listed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from tests.support.checkout import ROOT
from tests.support.cli import run
from tests.support.timelines import Timeline

pytestmark = pytest.mark.xdist_group("DaCe programs in processes")

MODEL = Path(__file__).with_name("stepping_model.py")
PRINTED = "24.0 24.0 24.0 24.0 0\n"


class Processes:
    """Processes that run the model with one cache. `cmake` is called once for each build."""

    entry: Path
    errors: Sequence[str]
    """What the processes that have built it have written on stderr."""

    def __init__(self, folder: Path) -> None:
        self.cache, self._log = folder / "cache", folder / "log"
        spy = folder / "programs" / "cmake"
        spy.parent.mkdir()
        spy.write_text(f'#!/bin/sh\necho "$@" >> "{self._log}"\nexec "{shutil.which("cmake")}" "$@"\n')
        spy.chmod(0o755)
        self._path = f"{spy.parent}:{os.environ['PATH']}"

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GTSTUB_", "DACE_"))}
        return subprocess.Popen(
            command or (sys.executable, str(MODEL)),
            env={
                **inherited,
                "PATH": self._path,
                "PYTHONPATH": str(ROOT),
                "GTSTUB_CACHE_DIR": str(self.cache),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*command, **environment)
        out, error = process.communicate(timeout=300)
        return process.returncode, out, error

    @property
    def entries(self) -> Sequence[Path]:
        return sorted(self.cache.glob("Model_step-*"))

    @property
    def builds(self) -> int:
        """Configurations by DaCe, without its caches; gtstub asks cmake for its compiler, too."""
        return self._log.read_text().count("-DDACE_LIBS") if self._log.exists() else 0


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Processes:
    """Two processes have built the program at once."""
    made = Processes(tmp_path_factory.mktemp("processes"))
    code, out, error = made.run(GTSTUB_MODE="Run")
    assert (code, out) == (1, "")
    assert "Program 'Model_step' has no entry in the cache" in error
    both = [process.communicate(timeout=300) for process in (made.start(), made.start())]
    assert [out for out, _ in both] == [PRINTED] * 2
    made.errors = [error for _, error in both]
    assert made.builds == 1
    (made.entry,) = made.entries
    return made


def test_the_entry_knows_the_stages_of_its_build(processes: Processes) -> None:
    stages = Entry(processes.entry).manifest().built.stages
    assert [stage.name for stage in stages] == ["parsing", "bindings", "generation", "compilation", "stub", "saving"]
    assert len({stage.pid for stage in stages}) == 1


def test_a_build_says_what_it_does(processes: Processes) -> None:
    """One process has built the program, and the other one has waited for it."""
    name = r"Model_step \(self\.factor=3\.0\)"
    waits = rf"gtstub: {name} waits for process \d+ on host '.*', which has been building it since [\d:]+\n"
    ends = rf"(gtstub: built {name} in \d+\.\d s|gtstub: {name} is ready after \d+\.\d s: process .* has built it)\n"
    for error in processes.errors:
        assert re.fullmatch(rf"gtstub: building {name}\n({waits})?{ends}", error), error


@pytest.mark.parametrize("mode", ["Run", "BuildAndRun", "Python"])
def test_later_processes_build_nothing(processes: Processes, mode: str) -> None:
    assert processes.run(GTSTUB_MODE=mode) == (0, PRINTED, "")
    assert processes.builds == 1


def test_mode_build_ends_at_the_first_call(processes: Processes) -> None:
    code, out, error = processes.run(GTSTUB_MODE="Build")
    assert (code, out) == (0, "")
    assert processes.entry.name in error
    assert processes.builds == 1


def test_a_program_without_bounds_is_another_one(processes: Processes) -> None:
    assert processes.run(GTSTUB_BOUNDS="0")[1] == PRINTED
    assert (processes.builds, len(processes.entries)) == (2, 2)
    texts = [(entry / "Model_step_stub.c").read_text() for entry in processes.entries]
    assert texts[0] != texts[1]
    assert processes.run(GTSTUB_BOUNDS="0", GTSTUB_MODE="Run") == (0, PRINTED, "")


def test_the_command_line_lists_and_shows_the_entry(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(processes.cache))
    listed, shown = run("cache", "list").output, run("cache", "show", processes.entry.name).output
    assert processes.entry.name in listed
    assert "self.factor=3.0" in listed
    assert "static.self.factor" in shown
    slots = run("show", str(processes.entry))
    assert slots.exit_code == 0, slots.output
    assert "self.w" in slots.output
    assert run("cache", "verify").exit_code == 0


def test_profile(processes: Processes, tmp_path: Path) -> None:
    assert processes.run(GTSTUB_PROFILE=str(tmp_path / "profile.json"))[1] == PRINTED
    (found,) = json.loads((tmp_path / "profile.json").read_text())["programs"]
    assert found["name"] == "Model_step"
    assert found["initial"]["calls"] + found["run"]["calls"] == 3


def test_timeline(processes: Processes, tmp_path: Path) -> None:
    assert processes.run(GTSTUB_TRACE=str(tmp_path / "trace.json"))[1] == PRINTED
    timeline = Timeline.read(tmp_path / "trace.json")
    calls, loads = timeline.named("call", "Model_step"), timeline.named("load", processes.entry.name)
    assert len(calls) == 3
    assert all(load.end <= calls[0].begin for load in loads)
    assert len(loads) == len(timeline.named("key", "Model_step")) == 1


def test_recording(processes: Processes, tmp_path: Path) -> None:
    """What is recorded can be made again by the entry, and gives the same numbers."""
    assert processes.run(GTSTUB_RECORD=str(tmp_path / "recording"))[1] == PRINTED
    found = run("replay", str(tmp_path / "recording"), str(processes.entry), "--compare")
    assert found.exit_code == 0, found.output
    assert "3" in found.output
