"""Builds take gtstub's DaCe configuration, whatever files say, and leave none behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gtstub.errors import ConfigError
from gtstub.frameworks.gt4py.backend import make_backend
from tests.frameworks.dace.test_dace_config import HOSTILE
from tests.support.own_cache import copy_answers
from tests.support.warm_python import WarmPython

pytestmark = pytest.mark.xdist_group("dace_config")

MODEL = """
import json
import gt4py.next as gtx
from gtstub.entries.cache.entry import Entry
from gtstub.frameworks.framework import compile

I = gtx.Dimension("I")

@gtx.field_operator
def _copy(a: gtx.Field[[I], gtx.float64]) -> gtx.Field[[I], gtx.float64]:
    return a

@gtx.program
def copy(a: gtx.Field[[I], gtx.float64], out: gtx.Field[[I], gtx.float64]):
    _copy(a, out=out)

program = compile(copy, backend_tag="GTSTUB_CPU", offset_provider={})
program.wait()
path = program.variants[0].result.result().path
print(json.dumps({"key": path.name, "manifest": Entry(path).manifest().to_json()}))
"""

COMPILER = """#!/bin/sh
echo "$@" >>"$COMMANDS"
exec c++ "$@"
"""


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes its commands into a file. Its folder keeps what CMake has answered about it."""
    path = tmp_path_factory.mktemp("compiler") / "c++"
    path.write_text(COMPILER)
    path.chmod(0o755)
    return path


def build(
    home: Path, compiler: Path, python: WarmPython | None = None, *, cache: Path, **environ: str
) -> dict[str, Any]:
    """
    Builds a program in a process of its own, whose home and current directory is `home`. One of `python` has imported
    DaCe elsewhere, which reads its file and its variables then.
    """
    home.mkdir(exist_ok=True)
    copy_answers(compiler.parent, cache)
    script, commands = home / "model.py", home.with_name(f"{home.name}-commands")
    script.write_text(MODEL)
    names = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    env = {"GT4PY_BUILD_JOBS_MODE": "serial", **inherited, "HOME": str(home), **environ}
    env |= {"CXX": str(compiler), "COMMANDS": str(commands), "GTSTUB_CACHE_DIR": str(cache)}
    # Most builds have flags of their own. To compile DaCe's headers in advance takes as long as three builds.
    env |= {"DACE_compiler_precompiled_header": "0"}
    with contextlib.chdir(home):
        if python is not None:
            done = python.run(script, env=env)
        else:
            done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    copy_answers(cache, compiler.parent)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    (found["command"],) = (line for line in commands.read_text().splitlines() if line.endswith("/copy.cpp"))
    return found


def test_a_hostile_file_changes_neither_flags_nor_key(tmp_path: Path, compiler: Path, warm_python: WarmPython) -> None:
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / ".dace.conf").write_text(HOSTILE)
    clean, hostile = (
        build(tmp_path / home, compiler, python, cache=tmp_path / home / "cache")
        for home, python in (("clean", warm_python), ("hostile", None))
    )
    assert clean["key"] == hostile["key"]
    for found in (clean, hostile):
        assert "-march=native" in found["command"]
        assert "HOSTILE" not in found["command"]
        assert "-fno-math-errno" not in found["command"]  # which DaCe's own default has
        assert found["manifest"]["ingredients"]["dace_config"]["overrides"] == {}
    files = {file.name for file in (tmp_path / "clean").iterdir()}
    assert files <= {"model.py", "cache", "__pycache__", ".gt4py_cache"}
    assert (tmp_path / "hostile" / ".dace.conf").read_text() == HOSTILE


def test_an_override_is_in_the_flags_and_in_the_key(tmp_path: Path, compiler: Path) -> None:
    found = build(tmp_path / "home", compiler, cache=tmp_path / "cache", DACE_compiler_cpu_args="-DEXPLICIT")
    assert "-DEXPLICIT" in found["command"]
    assert "-march=native" not in found["command"]
    ingredients = found["manifest"]["ingredients"]
    assert ingredients["dace_config"]["overrides"] == {"compiler.cpu.args": "-DEXPLICIT"}
    assert ingredients["cpu"] == []


def test_a_toolchain_file_is_in_the_flags_the_key_and_the_cpu(
    tmp_path: Path, compiler: Path, warm_python: WarmPython
) -> None:
    """DaCe's own CMake uses the flags that gtstub's question to CMake finds."""
    file = tmp_path / "toolchain.cmake"
    found = []
    for flags in ("", "-ffast-math", "-ffast-math -msse4.2", "-march=native"):
        file.write_text(f"add_compile_options({flags})\n" if flags else "")
        environ = {"CXXFLAGS": "-O1", "CMAKE_TOOLCHAIN_FILE": str(file)}
        found.append(build(tmp_path / "home", compiler, warm_python, cache=tmp_path / "cache", **environ))
        (tmp_path / "home-commands").unlink()
        assert set(flags.split()) <= set(found[-1]["command"].split())
    assert len({each["key"] for each in found}) == 4
    assert ["sse4_2" in each["manifest"]["machine"]["cpu"] for each in found[:3]] == [False, False, True]
    ingredients = found[-1]["manifest"]["ingredients"]
    assert "sse2" in ingredients["toolchain"]["cpu"]
    assert set(found[-1]["manifest"]["machine"]["cpu"]) <= set(ingredients["toolchain"]["cpu"])


def test_flags_of_the_environment_do_not_take_the_place_of_none(
    tmp_path: Path, compiler: Path, warm_python: WarmPython
) -> None:
    environ = {"CXXFLAGS": "-DHOLE", "DACE_compiler_cpu_args": ""}
    found = build(tmp_path / "home", compiler, warm_python, cache=tmp_path / "cache", **environ)
    assert "-DHOLE" not in found["command"]


@pytest.mark.parametrize(
    ("dace_config", "message"),
    [
        (
            {"compiler.cpu.arg": "-O2"},
            "DaCe has no setting 'compiler.cpu.arg'. Did you mean: 'compiler.cpu.args'?",
        ),
        ({"compiler": {"cpu": {"args": 2}}}, "DaCe's setting 'compiler.cpu.args' must be text, but is 2."),
    ],
)
def test_a_backend_refuses_what_dace_would_ignore(dace_config: Any, message: str) -> None:
    make_backend(gpu=False, dace_config={"compiler.cpu.args": "-O2"})
    with pytest.raises(ConfigError) as refused:
        make_backend(gpu=False, dace_config=dace_config)
    assert str(refused.value) == message


def test_a_gpu_that_is_named_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, nvcc compiles for the oldest GPU that it knows, and the entry would name another."""
    for named, expected in (("neoverse_v2,sm_80", "80"), ("sm_90", "90")):
        monkeypatch.setenv("GTSTUB_ARCH", named)
        overrides = make_backend(gpu=True).executor.compilation.build.ingredients["overrides"]
        assert overrides["compiler.cuda.cuda_arch"] == expected


def test_the_processes_in_which_gt4py_builds_make_the_key_of_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """gt4py hides the GPU from them, and sets CUDAARCHS to its architecture instead."""
    monkeypatch.setenv("GTSTUB_ARCH", "sm_90")
    parent = make_backend(gpu=True).executor.compilation.build.ingredients
    monkeypatch.setenv("CUDAARCHS", "90")
    assert make_backend(gpu=True).executor.compilation.build.ingredients == parent
