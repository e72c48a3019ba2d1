"""'gtstub build PROGRAMS.toml': what it builds, what a script then finds, and what it survives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gtstub.entries.cache.entry import Entry
from gtstub.frameworks.framework import compile  # noqa: A004
from tests.frameworks.gt4py import ahead
from tests.support.checkout import ROOT

PROGRAMS = """
[[program]]
source = "tests.frameworks.gt4py.ahead:relax"
horizontal_sizes.end = 5
bound_static_args.weight = 0.5
static_args.nudging = [true, false]

[[program]]
source = "tests.frameworks.gt4py.ahead:needs_grid"

[[program]]
source = "tests.frameworks.gt4py.ahead:relax"
grid = "tests.frameworks.gt4py.ahead:memory_hog"
"""

PATIENCE = 120
"""Seconds in which a process ends that was told to; what these tests start does not end by itself."""

pytestmark = pytest.mark.xdist_group("build_set")


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from gtstub.cli.app import main; main()", "build", *map(str, arguments)]


def build(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    cache = file.parent / "cache"
    line = command(file, "--cache", cache, *arguments)
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    programs = json.loads(done.stdout)["programs"]
    return {(outcome["program"], outcome["variant"]): outcome for outcome in programs}


def test_a_set_is_built_as_a_script_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "programs.toml"
    file.write_text(PROGRAMS)

    done = build(file, "--dry-run", "--jobs", "1", "--json")
    assert done.returncode == 1
    found = outcomes(done)
    assert found["relax", "nudging=True"]["state"] == "missing"
    assert not any((tmp_path / "cache").glob("relax-*"))

    done = build(file, "--jobs", "2", "--json")
    assert done.returncode == 1
    found = outcomes(done)
    states = {variant: outcome["state"] for variant, outcome in found.items()}
    assert states == {
        ("relax", "nudging=True"): "built",
        ("relax", "nudging=False"): "built",
        ("relax", ""): "failed",
        ("needs_grid", ""): "failed",
    }
    assert {outcome["error"] for outcome in found.values()} == {
        "",
        f"'{file}', line 12: Program 'relax' could not be built: SIGKILL killed its build process, perhaps"
        " because memory ran out.",
        f"'{file}', line 9: Program 'needs_grid' could not be built: Program 'needs_grid' needs connectivity 'V2E',"
        " which the offset provider does not have: pass it in 'offset_provider', which is empty.",
    }
    assert "1/4 " in done.stderr

    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GTSTUB_MODE", "Run")  # which builds nothing
    program = compile(
        ahead.relax,
        horizontal_sizes={"end": 7},
        bound_static_args={"weight": 0.5},
        static_args={"nudging": [True, False]},
        offset_provider={},
    )
    keys = {variant.result.result().path.name for variant in program.variants}
    assert keys == {found["relax", f"nudging={nudging}"]["key"] for nudging in (True, False)}


SMALLEST_FIRST = """
[[program]]
source = "tests.frameworks.gt4py.ahead:relax"
bound_static_args.nudging = true

[[program]]
source = "tests.frameworks.gt4py.ahead:relax_often"
"""


def test_programs_that_were_never_built_are_built_in_the_order_of_their_sizes(tmp_path: Path) -> None:
    """They are lowered first, which gives their sizes, and not lowered again."""
    file = tmp_path / "programs.toml"
    file.write_text(SMALLEST_FIRST)
    done = build(file, "--json")
    assert done.returncode == 0, done.stderr
    programs = json.loads(done.stdout)["programs"]
    assert [(each["program"], each["state"]) for each in programs] == [("relax_often", "built"), ("relax", "built")]
    built = [Entry(tmp_path / "cache" / each["key"]).manifest().built.stages for each in programs]
    large, small = ({stage.name: stage.begin for stage in stages} for stages in built)
    assert large["lowering"] < large["translation"] < large["saving"] < small["translation"]
    assert small["lowering"] < large["translation"]


MODEL = """
import gt4py.next as gtx
import numpy as np
from icon4py.model.common import model_backends

import gtstub
from gtstub.frameworks.gt4py import make_backend
from gtstub.frameworks.icon4py import customize_backend
from tests.frameworks.gt4py import ahead
from tests.frameworks.gt4py.ahead import I, Line, _relax

@gtx.program
def unnamed(x: Line, end: gtx.int32):
    _relax(x, 0.5, True, out=x, domain={I: (0, end)})
local, unnamed = unnamed, None

def main():
    static = {"bound_static_args": {"weight": 0.5}, "static_args": {"nudging": [True, False]}}
    gtstub.compile(ahead.relax, **static, backend_tag="CPU")
    gtstub.compile(ahead.needs_grid, backend_tag="CPU", offset_provider=ahead.grid())
    gtstub.compile(local, backend_tag="CPU")
    x = gtx.as_field([I], np.ones(5))
    for backend in customize_backend(None, {"device": model_backends.CPU}), make_backend(False, auto_optimize=False):
        ahead.relax.with_backend(backend)(x, 0.5, True, 5, offset_provider={})

if __name__ == "__main__":
    main()
"""


ONE = """
import gtstub
from tests.frameworks.gt4py import ahead

if __name__ == "__main__":
    gtstub.compile(ahead.{program}, backend_tag="CPU", {options})
"""


def list_run(cache: Path, file: Path, grid: str, *run: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in mode Build, which writes `file`."""
    options = ("--from-run", file, "--cache", cache, *(("--grid", grid) if grid else ()))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GTSTUB_BACKENDS": ""}
    line = command(*options, "--", *run)
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    A folder with the list of a run, programs.toml, and its cache. Of programs that are compiled ahead and of those that
    gt4py itself calls, with the keys of the run; a second run finds them, and gives its grid no name.
    """
    folder = tmp_path_factory.mktemp("listed")
    model = folder / "model.py"
    model.write_text(MODEL)
    for name, grid, count, summary in (
        ("programs.toml", "tests.frameworks.gt4py.ahead:grid", 4, "6 built"),
        ("others.toml", "", 3, "6 found"),
    ):
        done = list_run(folder / "cache", folder / name, grid, sys.executable, model)
        assert done.returncode == 0, done.stderr
        lines = done.stderr.splitlines()
        assert summary in lines
        assert f"{count} listed in '{folder / name}', {6 - count} left out" in lines
        left_out = {line.split(",")[0] for line in lines if " is not listed: " in line}
        assert left_out == {
            "Program 'relax' is not listed: its backend was made with options",
            "Program 'unnamed' is not listed: module '__main__' has no 'unnamed' that is this program.",
            *([] if grid else ["Program 'needs_grid' is not listed: its offset provider has no name"]),
        }
    return folder


def test_a_run_lists_its_programs(listed: Path) -> None:
    done = build(listed / "programs.toml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "4 found"


def test_a_list_with_another_grid_is_an_error(tmp_path: Path, listed: Path) -> None:
    """A second process adds to the list of the first."""
    file, one, two = (tmp_path / name for name in ("programs.toml", "one.py", "two.py"))
    one.write_text(ONE.format(program="needs_grid", options="offset_provider=ahead.grid()"))
    two.write_text(ONE.format(program="relax", options='bound_static_args={"weight": 0.5, "nudging": True}'))
    run = f"{sys.executable} {one} && {sys.executable} {two}"
    done = list_run(listed / "cache", file, "tests.frameworks.gt4py.ahead:other_grid", "sh", "-c", run)
    assert done.returncode == 1, done.stderr
    (key,) = [path.name for path in (listed / "cache").glob("needs_grid-*")]
    assert (
        f"The list does not name these entries of the run: {key}. If there is no error above, their grid is"
        in done.stderr
    )
    assert file.read_text().count("[[program]]") == 2


def test_a_run_without_programs_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "programs.toml"
    line = command("--from-run", file, "--", sys.executable, "-c", "pass")
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "neither set up nor called a program" in done.stderr
    failed = command("--from-run", file, "--", sys.executable, "-c", "raise SystemExit(7)")
    assert subprocess.run(failed, capture_output=True, check=False).returncode == 7


ENDLESS = """
[[program]]
source = "tests.frameworks.gt4py.ahead:relax"
grid = "tests.frameworks.gt4py.ahead:endless"
static_args.nudging = [true, false]
"""


def heed_ctrl_c() -> None:
    """Runs in the child: a shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_the_workers_and_their_compilers(tmp_path: Path) -> None:
    file, begun = tmp_path / "programs.toml", tmp_path / "begun"
    file.write_text(ENDLESS)
    begun.mkdir()
    running = subprocess.Popen(
        command(file, "--cache", tmp_path / "cache", "--jobs", "2"),
        cwd=ROOT,
        env={**os.environ, "ENDLESS": str(begun)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    )
    while len(processes := [int(path.name) for path in begun.iterdir()]) < 4:
        assert running.poll() is None
        time.sleep(0.05)
    try:
        os.kill(running.pid, signal.SIGINT)
        running.communicate(timeout=PATIENCE)
        assert running.returncode != 0
        deadline = time.monotonic() + PATIENCE
        while any(map(_runs, processes)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        for pid in (running.pid, *processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Whether there is such a process; what has ended and not been waited for is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False
