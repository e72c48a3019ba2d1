"""Second processes: what they find in the cache, what they do in each mode, and what they refuse."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gtstub
from gtstub.entries.cache.entry import Entry
from gtstub.errors import CacheError, ConfigError
from gtstub.settings import Mode, mode
from tests.support.timelines import Timeline
from tests.support.warm_python import WarmPython

WARM = Path(__file__).with_name("warm.py")
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "clang++", "cmake", "make", "ninja", "ld", "nvcc")

pytestmark = pytest.mark.xdist_group("modes")


@dataclasses.dataclass(frozen=True)
class Model:
    """
    Runs warm.py with compilers that write their names into the file 'log' of `programs`, and do their work. They are
    wrappers, which each process asks for the version unless it never builds.
    """

    programs: Path
    python: WarmPython

    def run(self, cache: Path, *ways: str, fresh: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
        """A process that has nothing but the cache; a fresh one imports gt4py itself."""
        self.log.write_text("")
        left_out = ("GT4PY_BUILD_CACHE", "GTSTUB_")
        env = {
            # The host's own CC would go round the spies.
            **{n: value for n, value in os.environ.items() if not n.startswith(left_out) and n not in ("CC", "CXX")},
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "GTSTUB_CACHE_DIR": str(cache),
            "GTSTUB_BACKENDS": "",
            **environment,
        }
        if not fresh:
            return self.python.run(WARM, *ways, env=env)
        return subprocess.run([sys.executable, WARM, *ways], env=env, capture_output=True, text=True, check=False)

    @property
    def log(self) -> Path:
        return self.programs / "log"

    @property
    def compiled(self) -> list[str]:
        """The compilers that did more than to print their versions."""
        return [name for name in self.log.read_text().splitlines() if not name.endswith(" --version")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython) -> Model:
    folder = tmp_path_factory.mktemp("programs")
    for name in COMPILERS:
        if (real := shutil.which(name)) is not None:
            (folder / name).write_text(f'#!/bin/sh\necho {name} "$1" >>"{folder}/log"\nexec "{real}" "$@"\n')
            (folder / name).chmod(0o755)
    return Model(folder, warm_python)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Path:
    """A cache in which another process has built what all ways need, with da_min = 0.5. Beside it is its timeline."""
    cache = tmp_path_factory.mktemp("cache") / "cache"
    timeline = str(cache.with_name("trace.json"))
    done = model.run(cache, "compile", "backend", "setup", fresh=True, GTSTUB_TRACE=timeline)
    assert answer(done)["results"] == {"compile": 6.0, "backend": 6.0, "setup": 6.0}
    assert {"damped", "damped_by_grid"} == set(answer(done)["lowered"])
    assert model.compiled, "The spies on compilers do not work."
    return cache


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def entries(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.is_dir() and not path.name.startswith(".")}


# --- Timelines --------------------------------------------------------------------------------------------------------


def test_timeline_of_a_process_that_builds(built: Path) -> None:
    timeline = Timeline.read(built.with_name("trace.json"))
    timeline.check_nesting()
    stages = {span.name for span in timeline.spans if span.kind == "build"}
    wanted = ("lowering", "translation", "bindings", "generation", "compilation", "stub", "saving")
    assert stages == {f"{name}: {stage}" for name in ("damped", "damped_by_grid") for stage in wanted}
    assert {span.name for span in timeline.spans if span.kind == "key"} == {"damped", "damped_by_grid"}
    begin_of_calls = min(span.begin for span in timeline.spans if span.kind == "call")
    compilations = [span for span in timeline.spans if span.name.endswith(": compilation")]
    assert min(span.end for span in compilations) <= begin_of_calls
    assert {span.name.rpartition("-")[0] for span in timeline.spans if span.kind == "lookup"} >= {"damped"}


# --- A hit is a hit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["compile", "backend", "setup"])
def test_second_process_neither_lowers_nor_compiles_nor_starts_processes(built: Path, model: Model, way: str) -> None:
    """Also where gt4py's jobs run in processes, as they do unless it is told other. One imports gt4py itself."""
    done = answer(model.run(built, way, fresh=way == "compile", GT4PY_BUILD_JOBS_MODE="process"))
    assert done == {"results": {way: 6.0}, "lowered": [], "children": 0}
    assert model.compiled == []


@pytest.mark.parametrize("wait", ["wait", "wait_gt4py"])
def test_hit_starts_no_processes_after_somebody_has_waited(built: Path, model: Model, wait: str) -> None:
    done = answer(model.run(built, "compile", wait, "backend", GT4PY_BUILD_JOBS_MODE="process"))
    assert done == {"results": {"compile": 6.0, "backend": 6.0}, "lowered": [], "children": 0}


@pytest.mark.parametrize("mode", ["Run", "BuildAndRun"])
def test_hit_needs_no_compiler(built: Path, model: Model, mode: str) -> None:
    done = answer(model.run(built, "compile", "backend", "setup", GTSTUB_MODE=mode, PATH="/nonexistent"))
    assert done == {"results": {"compile": 6.0, "backend": 6.0, "setup": 6.0}, "lowered": [], "children": 0}


def test_imported_entry_needs_no_compiler_either(built: Path, model: Model, tmp_path: Path) -> None:
    """What `gtstub cache import` brings is the entry alone."""
    cache = tmp_path / "cache"
    shutil.copytree(built, cache, ignore=shutil.ignore_patterns("toolchain-*.json"))
    done = answer(model.run(cache, "compile", GTSTUB_MODE="Run", PATH="/nonexistent"))
    assert done == {"results": {"compile": 6.0}, "lowered": [], "children": 0}


def test_mode_run_asks_neither_cmake_nor_compilers(built: Path, model: Model, tmp_path: Path) -> None:
    """Where they are others than those of the build, as far as one can see without asking them."""
    shutil.copytree(model.programs, tmp_path / "others")
    path = f"{tmp_path / 'others'}:{os.environ['PATH']}"
    assert answer(model.run(built, "compile", GTSTUB_MODE="Run", PATH=path))["results"] == {"compile": 6.0}
    assert model.log.read_text() == ""


def test_of_entries_of_two_toolchains_the_whole_one_is_used(built: Path, model: Model, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(built, cache)
    assert answer(model.run(cache, "compile", CFLAGS="-DOTHER"))["results"] == {"compile": 6.0}
    for broken in cache.glob("damped-*"):
        content = (broken / "libdamped.so").read_bytes()
        (broken / "libdamped.so").write_bytes(b"")
        assert answer(model.run(cache, "compile", GTSTUB_MODE="Run"))["results"] == {"compile": 6.0}
        (broken / "libdamped.so").write_bytes(content)


def test_missing_compiler_is_named_where_one_is_needed(model: Model, tmp_path: Path) -> None:
    done = model.run(tmp_path / "cache", "compile", PATH="/nonexistent")
    assert done.returncode == 1
    assert "gtstub.errors.ToolchainError: A C compiler was not found" in done.stderr


def test_shared_layer_is_as_good(built: Path, model: Model, tmp_path: Path) -> None:
    own = tmp_path / "own"
    done = answer(model.run(own, "compile", "backend", GTSTUB_SHARED_CACHE_DIR=str(built)))
    assert done["lowered"] == []
    assert model.compiled == []
    assert not own.exists()


def test_cache_can_be_moved(built: Path, model: Model, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "moved")
    assert answer(model.run(tmp_path / "moved", "compile", GTSTUB_MODE="Run"))["results"] == {"compile": 6.0}


# --- Modes ------------------------------------------------------------------------------------------------------------


def test_mode_run_builds_nothing(built: Path, model: Model) -> None:
    done = answer(model.run(built, "compile", "backend", "setup", GTSTUB_MODE="Run"))
    assert done["results"] == {"compile": 6.0, "backend": 6.0, "setup": 6.0}


@pytest.mark.parametrize("way", ["compile", "backend"])
def test_mode_run_says_what_is_missing_and_what_builds_it(model: Model, tmp_path: Path, way: str) -> None:
    cache = tmp_path / "empty"
    done = model.run(cache, way, FV3_DACEMODE="run")
    assert done.returncode == 1
    program = "damped" if way == "compile" else "damped_by_grid"
    assert done.stderr.splitlines()[-1] == (
        f"gtstub.errors.CacheError: Program '{program}' has no entry in the cache '{cache}',"
        " and mode 'Run' builds none."
        f" The cache has no entry of this program. To build it: GTSTUB_MODE=Build {sys.executable} {WARM} {way}"
    )
    assert not cache.exists() or entries(cache) == set()


def test_mode_run_says_why_an_entry_is_not_used(built: Path, model: Model, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "broken")
    (path,) = (tmp_path / "broken").glob("damped-*")
    (path / "libdamped.so").write_bytes(b"")
    done = model.run(tmp_path / "broken", "compile", GTSTUB_MODE="Run")
    assert done.returncode == 1
    reason = f"File 'libdamped.so' of cache entry '{path}' has 0 bytes"
    assert f"The entry that exists cannot be used: {reason}" in done.stderr
    assert (path / "libdamped.so").read_bytes() == b""


def test_broken_entry_is_built_again(built: Path, model: Model, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "broken")
    (path,) = (tmp_path / "broken").glob("damped-*")
    (path / "damped_stub.so").write_bytes(b"")
    assert answer(model.run(tmp_path / "broken", "compile"))["results"] == {"compile": 6.0}
    Entry(path).verify()


def test_mode_build_ends_with_a_summary_of_all_ways(built: Path, model: Model) -> None:
    """Programs that are called once run, also those that gt4py itself compiles, so that one run builds everything."""
    done = model.run(built, "compile", "backend", "setup", GTSTUB_MODE="BUILD")
    assert answer(done)["results"] == {"compile": 6.0, "backend": 6.0, "setup": 6.0}
    lines = [line.split() for line in done.stderr.splitlines()]
    (key,) = (name for name in entries(built) if name.startswith("damped-"))
    assert ["damped", "da_min=0.5,", "k_end=4", "found"] in [line[:4] for line in lines], done.stderr
    assert key in done.stderr
    assert [line[0] for line in lines].count("damped_by_grid") == 2
    assert lines[-1] == ["3", "found"]


def test_mode_build_ends_in_the_time_loop(built: Path, model: Model) -> None:
    """What the model calls while it sets up programs runs, and so do some rounds, in which it might set up more."""
    done = model.run(built, "model", "compile", GTSTUB_MODE="Build")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["set up 12.0", *(f"step {step}" for step in range(10))]
    lines = done.stderr.splitlines()
    why = "program 'damped' was called 10 times, and nothing was set up in between"
    assert f"gtstub: mode Build ends the run here: {why}." in lines
    assert lines[-1] == "3 found"


@pytest.mark.parametrize(
    ("way", "why"), [("bind", "program 'damped' is bound"), ("capture", "step 'step' is captured")]
)
def test_mode_build_ends_where_calls_are_kept(built: Path, model: Model, way: str, why: str) -> None:
    done = model.run(built, way, GTSTUB_MODE="Build")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert (lines[0], lines[-1]) == (f"gtstub: mode Build ends the run here: {why}.", "1 found")


def test_mode_build_ends_at_the_call_of_a_program_that_is_not_built(model: Model, tmp_path: Path) -> None:
    done = model.run(tmp_path / "cache", "call_broken", "compile", GTSTUB_MODE="Build")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "gtstub: mode Build ends the run here: program 'hopeless' is called, which cannot be loaded here: " in (
        done.stderr
    )
    assert "1 built, 2 failed" in done.stderr.splitlines()


@pytest.mark.parametrize("wait", [["wait"], []])  # at the end of a script it waits as well
def test_mode_build_goes_on_behind_a_program_that_cannot_be_built(
    model: Model, tmp_path: Path, wait: list[str]
) -> None:
    done = model.run(tmp_path / "cache", "broken", *wait, GTSTUB_MODE="Build", GT4PY_BUILD_JOBS_MODE="process")
    assert done.returncode == 1, done.stderr
    assert "1 built, 1 failed" in done.stderr.splitlines()
    assert "Too many indices for field" in done.stderr
    assert "Traceback" not in done.stderr
    (key,) = entries(tmp_path / "cache")
    assert key in done.stderr
    if not wait:  # what was printed was not lost
        assert json.loads(done.stdout)["results"] == {"broken": 0.0}


@pytest.mark.parametrize(("mode", "counts"), [("BuildAndRun", "1 left"), ("Build", "2 built, 1 left")])
def test_variants_that_are_not_called_are_left(model: Model, tmp_path: Path, mode: str, counts: str) -> None:
    """Those of a program with one variant are not. A table says which were left; a later call builds them."""
    done = model.run(tmp_path / "cache", "lazy", GTSTUB_MODE=mode, GTSTUB_LAZY="1")
    assert answer(done)["results"] == {"lazy": 6.0}
    assert answer(done)["lowered"] == ["damped_by_grid", "damped"]
    assert len(entries(tmp_path / "cache")) == 2
    lines = done.stderr.splitlines()
    assert ["damped", "da_min=0.25", "left", "0.0"] in [line.split() for line in lines]
    assert lines[-1] == counts
    if mode == "BuildAndRun":
        again = model.run(tmp_path / "cache", "lazy", GTSTUB_MODE="Run", GTSTUB_LAZY="1")
        assert answer(again)["lowered"] == []
        missing = model.run(tmp_path / "cache", "lazy", GTSTUB_MODE="Run")
        assert missing.stderr.splitlines()[-1].startswith("gtstub.errors.CacheError: Program 'damped' ")


def test_mode_build_does_not_mind_backends_of_gt4pys_own(model: Model, tmp_path: Path) -> None:
    done = model.run(tmp_path / "cache", "own", GTSTUB_MODE="Build")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "Nothing to build."


def test_mode_run_refuses_backends_of_gt4pys_own(model: Model, tmp_path: Path) -> None:
    done = model.run(tmp_path / "cache", "own", GTSTUB_MODE="Run")
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith(
        "gtstub.errors.CacheError: Program 'damped_by_grid' has no entry in gtstub's cache, because"
    )
    assert "is a backend of gt4py's own, and mode 'Run' builds nothing" in message
    assert model.log.read_text() == ""


@pytest.mark.parametrize("variable", ["GTSTUB_MODE", "FV3_DACEMODE"])
def test_mode_python_compiles_nothing(model: Model, tmp_path: Path, variable: str) -> None:
    done = answer(model.run(tmp_path / "cache", "compile", "backend", **{variable: "Python"}))
    assert done == {"results": {"compile": 6.0, "backend": 6.0}, "lowered": [], "children": 0}
    assert model.log.read_text() == ""
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Mode.BUILD_AND_RUN),
        ({"GTSTUB_MODE": ""}, Mode.BUILD_AND_RUN),
        ({"GTSTUB_MODE": "buildandrun"}, Mode.BUILD_AND_RUN),
        ({"GTSTUB_MODE": "RUN"}, Mode.RUN),
        ({"FV3_DACEMODE": "build"}, Mode.BUILD),
        ({"GTSTUB_MODE": "Python", "FV3_DACEMODE": "Run"}, Mode.PYTHON),
    ],
)
def test_mode_of_the_environment(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: Mode) -> None:
    for name in ("GTSTUB_MODE", "FV3_DACEMODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert mode() == expected


def test_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTSTUB_MODE", raising=False)
    monkeypatch.setenv("FV3_DACEMODE", "Runn")
    with pytest.raises(ConfigError) as caught:
        mode()
    assert str(caught.value) == "FV3_DACEMODE cannot be 'Runn'. Did you mean: 'Run'?"


# --- Values that are compiled in --------------------------------------------------------------------------------------
# da_min is the smallest cell of a grid: it depends on the decomposition, and nothing in a program writes it.


@pytest.mark.parametrize(
    ("way", "what"),
    [("compile", "'static.da_min'"), ("setup", "'program.constants._damped_by_grid.grid.da_min'")],
)
def test_value_of_another_decomposition_is_refused(built: Path, model: Model, way: str, what: str) -> None:
    done = model.run(built, way, GTSTUB_MODE="Run", DA_MIN="0.25")
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert "differs: " in message
    difference, *trees = message.partition("differs: ")[2].partition(". To build it")[0].split("; ")
    assert len(trees) == (way == "setup")  # The constant is also in the operator's tree.
    assert difference.startswith(f"{what} is ")
    assert "0.25" in difference.partition("but was")[0]
    assert "0.5" in difference.partition("but was")[2]


def test_entry_says_what_is_compiled_in_and_refuses_another_value(built: Path) -> None:
    (path,) = built.glob("damped-*")
    assert Entry(path).manifest().baked == {"da_min": 0.5, "k_end": 4}
    gtstub.load(path, {"da_min": 0.5, "k_end": 4, "i_end": 7})
    with pytest.raises(CacheError) as caught:
        gtstub.load(path, {"da_min": 0.25})
    assert str(caught.value) == (
        f"The cache entry '{path}' has da_min = 0.5 compiled in, but da_min = 0.25 was requested: build it for that"
        " value, or pass the value at run time."
    )
    by_grid = [Entry(path).manifest().baked for path in built.glob("damped_by_grid-*")]
    assert {baked["_damped_by_grid.grid.da_min"] for baked in by_grid} == {0.5}


def test_value_that_is_left_to_run_time_is_right_everywhere(model: Model, tmp_path: Path) -> None:
    first = model.run(tmp_path / "cache", "compile", DA_MIN="0.5", DA_MIN_FREE="1")
    assert answer(first)["results"] == {"compile": 6.0}
    elsewhere = model.run(tmp_path / "cache", "compile", DA_MIN="0.25", DA_MIN_FREE="1", GTSTUB_MODE="Run")
    assert answer(elsewhere)["results"] == {"compile": 12.0}
    assert answer(elsewhere)["lowered"] == []


def test_nothing_need_be_set(model: Model, tmp_path: Path) -> None:
    """The default runner of gt4py, which builds in processes, and the user's cache directory; then mode Run."""
    environment = {"GTSTUB_CACHE_DIR": "", "GT_CACHE_ROOT": "", "XDG_CACHE_HOME": str(tmp_path)}
    unset = Path()
    done = answer(model.run(unset, "compile", GT4PY_BUILD_JOBS_MODE="process", **environment))
    assert done["results"] == {"compile": 6.0}
    (key,) = entries(tmp_path / "gtstub")
    stages = {stage.name: stage.pid for stage in Entry(tmp_path / "gtstub" / key).manifest().built.stages}
    assert stages["lowering"] != stages["translation"] == stages["compilation"]
    assert answer(model.run(unset, "compile", GTSTUB_MODE="Run", **environment))["lowered"] == []


def test_cache_that_cannot_be_written(model: Model) -> None:
    """Mode BuildAndRun does without; mode Build would build in vain."""
    cache = Path("/dev/null/cache")
    done = model.run(cache, "compile")
    assert answer(done)["results"] == {"compile": 6.0}
    assert [line for line in done.stderr.splitlines() if line.startswith("gtstub: the cache")] == [
        f"gtstub: the cache '{cache}' cannot be written. What this process compiles is lost when it exits. To keep it,"
        " name another directory in GTSTUB_CACHE_DIR."
    ]
    done = model.run(cache, "compile", GTSTUB_MODE="Build")
    assert done.returncode == 1
    assert f"The cache cannot be written at '{cache}/.claims': Not a directory." in done.stderr
