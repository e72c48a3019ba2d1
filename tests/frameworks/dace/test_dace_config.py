"""The frozen configuration of DaCe: complete, overridden only by what says so, and in force whatever files say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gtstub.errors import ConfigError

dace = pytest.importorskip("dace")

from gtstub.frameworks.dace import dace_config  # noqa: E402

HOSTILE = """
cache: unique
compiler:
  use_cache: true
  build_jobs: 7
  cpu:
    args: -O0 -DHOSTILE
  cuda:
    backend: hip
optimizer:
  autotile_size: 3
"""


def values(device: Any = "cpu", build_type: str = "Release", environ: Any = (), **overrides: Any) -> dict[str, Any]:
    given = {name.replace("__", "."): value for name, value in overrides.items()}
    made = dace_config.configuration(device, build_type, given, dict(environ))
    return {name: setting.value for name, setting in made.items()}


def schema() -> dict[str, Any]:
    """All settings of the installed DaCe: their types and defaults."""
    types = {"bool": bool, "int": int, "float": float, "str": str}

    def walk(path: tuple[str, ...]) -> Any:
        for name, what in dace.Config.get_metadata(*path)["required"].items():
            if what["type"] == "dict":
                yield from walk((*path, name))
            else:
                yield ".".join((*path, name)), (types[what["type"]], dace.Config.get_default(*path, name))

    return dict(walk(()))


def test_every_setting_of_dace_is_decided_and_none_is_invented() -> None:
    assert {name: type(value) for name, value in dace_config.defaults().items()} == {
        name: type_ for name, (type_, _) in schema().items()
    }


def test_what_is_said_to_be_the_default_of_dace_is_it() -> None:
    said = dace_config.leaves(dace_config._document()["default"])
    assert said == {name: default for name, (_, default) in schema().items() if name in said}


def test_what_is_said_not_to_matter_exists() -> None:
    assert {*dace_config._document()["neutral"], *dace_config._document()["without_effect"]} <= schema().keys()


def test_who_speaks_later_wins() -> None:
    name = "compiler.cpu.args"
    environ = {}
    file = dace_config.Setting(dace_config.defaults()[name], "gtstub")
    assert dace_config.configuration("cpu", "Release", {}, environ)[name] == file
    for variable in ("CXXFLAGS", "DACE_compiler_cpu_args"):
        environ[variable] = f"-DFROM_{variable}"
        assert dace_config.configuration("cpu", "Release", {}, environ)[name] == dace_config.Setting(
            f"-DFROM_{variable}", variable
        )
    decided = dace_config.configuration("cpu", "Release", {name: "-Os"}, environ)[name]
    assert decided == dace_config.Setting("-Os", "dace_config")


def test_a_build_type_adds_to_flags_that_nothing_overrides() -> None:
    assert values(build_type="Debug")["compiler.build_type"] == "Debug"
    assert values(build_type="Debug")["compiler.cpu.args"].startswith("-g -fPIC -O3")
    assert values(build_type="Debug", environ={"CXXFLAGS": "-O1"})["compiler.cpu.args"] == "-O1"


@pytest.mark.parametrize(("device", "backend"), [("cpu", "auto"), ("cuda", "cuda"), ("rocm", "hip")])
def test_a_gpu_decides_what_dace_would_guess(device: str, backend: str) -> None:
    assert values(device)["compiler.cuda.backend"] == backend


def test_variables_are_read_as_dace_reads_them() -> None:
    environ = {
        "DACE_compiler_use_cache": "yes",
        "DACE_optimizer_autotile_size": "64",
        "DACE_compiler_cuda_persistent_map_SM_fraction": "0.5",
        "DACE_CONFIG": "/elsewhere",
    }
    made = values(environ=environ)
    assert made["compiler.use_cache"] is True
    assert made["optimizer.autotile_size"] == 64
    assert made["compiler.cuda.persistent_map_SM_fraction"] == 0.5


def test_overrides_may_be_nested_as_in_a_table() -> None:
    nested = {"compiler": {"cpu": {"args": "-Os"}, "build_jobs": 2}}
    made = dace_config.configuration("cpu", "Release", nested, {})
    assert made["compiler.cpu.args"].value == "-Os"
    assert made == dace_config.configuration(
        "cpu", "Release", {"compiler.cpu.args": "-Os", "compiler.build_jobs": 2}, {}
    )


@pytest.mark.parametrize(
    ("overrides", "environ", "message"),
    [
        (
            {"compiler.cpu.arg": "-O1"},
            {},
            "DaCe has no setting 'compiler.cpu.arg'. Did you mean: 'compiler.cpu.args'?",
        ),
        (
            {"compiler.build_jobs": "4"},
            {},
            "DaCe's setting 'compiler.build_jobs' must be an integer, but is '4'.",
        ),
        (
            {"optimizer.autotile_size": True},
            {},
            "DaCe's setting 'optimizer.autotile_size' must be an integer, but is True.",
        ),
        (
            {"profiling": True},
            {},
            "DaCe's setting 'profiling' would have no effect: gtstub makes the calls, and decides where it builds.",
        ),
        (
            {},
            {"DACE_optimizer_autotile_size": "many"},
            "Variable 'DACE_optimizer_autotile_size' must be an integer, but is 'many'.",
        ),
    ],
)
def test_what_dace_would_ignore_is_refused(overrides: Any, environ: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        dace_config.configuration("cpu", "Release", overrides, environ)
    assert str(refused.value) == message


# --- In keys ----------------------------------------------------------------------------------------------------------


def test_an_override_is_in_the_key_by_its_name() -> None:
    plain = dace_config.ingredients("cpu", "Release", {}, {})
    assert plain["overrides"] == {}
    by_code = dace_config.ingredients("cpu", "Release", {"compiler.cpu.args": "-O1"}, {})
    assert by_code["overrides"] == {"compiler.cpu.args": "-O1"}
    assert by_code["defaults"] == plain["defaults"]


def test_who_said_it_is_not_in_the_key() -> None:
    said = [
        ({"compiler.cpu.args": "-O1"}, {}),
        ({}, {"CXXFLAGS": "-O1"}),
        ({}, {"DACE_compiler_cpu_args": "-O1"}),
    ]
    first, *others = [
        dace_config.ingredients("cpu", "Release", overrides, environ)["overrides"] for overrides, environ in said
    ]
    assert all(other == first for other in others)


def test_how_a_build_is_made_is_not_in_the_key() -> None:
    plain = dace_config.ingredients("cpu", "Release", {}, {})
    assert dace_config.ingredients("cpu", "Release", {}, {"DACE_debugprint": "1", "DACE_progress": "1"}) == plain
    assert dace_config.ingredients("cpu", "Release", {"compiler.build_jobs": 8}, {}) == plain


def test_flags_of_gpus_are_in_the_keys_of_gpus() -> None:
    environ = {"CUDAFLAGS": "-O1"}
    assert dace_config.ingredients("cpu", "Release", {}, environ)["overrides"] == {}
    overrides = dace_config.ingredients("cuda", "Release", {}, environ)["overrides"]
    assert overrides == {"compiler.cuda.args": "-O1", "compiler.cuda.backend": "cuda"}


def test_the_compiler_of_a_gpu_is_in_the_key() -> None:
    environ = {"CUDACXX": "nvcc-12", "PATH": "/bin"}
    assert dace_config.ingredients("cuda", "Release", {}, environ)["environment"] == {"CUDACXX": "nvcc-12"}
    assert dace_config.ingredients("cpu", "Release", {}, environ)["environment"] == {}


# --- In force ---------------------------------------------------------------------------------------------------------


def run(script: str, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose home and current directory is `home`: DaCe reads files when it is imported."""
    names = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=home,
        env={**inherited, "HOME": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


SHOW = """
import json
import dace
from gtstub.frameworks.dace.dace_config import defaults, frozen

def everything():
    return {name: dace.Config.get(*name.split(".")) for name in defaults()}

before = everything()
with frozen("cpu", "Release"):
    inside = everything()
assert everything() == before
print(json.dumps({"before": before, "inside": inside}))
"""


@pytest.mark.parametrize("where", [".dace.conf", "elsewhere.conf"])
def test_files_decide_nothing(where: str, tmp_path: Path) -> None:
    (tmp_path / where).write_text(HOSTILE)
    done = run(SHOW, tmp_path, DACE_CONFIG=str(tmp_path / where))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["before"]["compiler.cpu.args"] == "-O0 -DHOSTILE"
    assert found["inside"] == values()
    assert [file.name for file in tmp_path.iterdir()] == [where]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            "compiler:\n  cpu:\n    openmp_sections: true\n",
            "DaCe was imported with 'compiler.cpu.openmp_sections' = True, but gtstub builds with False: remove it from"
            " '.dace.conf', or set it in 'DACE_compiler_cpu_openmp_sections'.",
        ),
        (
            "compiler:\n  default_data_types: C\n",
            "DaCe was imported with 'compiler.default_data_types' = 'C', but gtstub builds with 'Python': remove it"
            " from '.dace.conf', or set it in 'DACE_compiler_default_data_types'.",
        ),
    ],
)
def test_what_the_import_has_decided_is_refused(file: str, message: str, tmp_path: Path) -> None:
    (tmp_path / ".dace.conf").write_text(file)
    done = run(SHOW, tmp_path)
    assert done.stderr.splitlines()[-1] == f"gtstub.errors.ConfigError: {message}"


def test_a_variable_holds_where_dace_reads_it_at_import(tmp_path: Path) -> None:
    done = run(SHOW, tmp_path, DACE_compiler_cpu_openmp_sections="1")
    assert json.loads(done.stdout)["inside"]["compiler.cpu.openmp_sections"] is True


def test_an_error_puts_back_what_was() -> None:
    def fail() -> None:
        with dace_config.frozen("cpu", "Release", {"compiler.cpu.args": "-DOURS"}):
            assert dace.Config.get("compiler", "cpu", "args") == "-DOURS"
            raise KeyError

    before = dace.Config.get("compiler", "cpu", "args")
    with pytest.raises(KeyError):
        fail()
    assert dace.Config.get("compiler", "cpu", "args") == before
