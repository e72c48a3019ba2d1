"""The table of environment variables on docs/dace-config.md: each variable does what its row says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gtstub.entries.toolchain.compiler import find
from gtstub.entries.toolchain.environment import ANSWERED, IN_KEY, WITHOUT_EFFECT, in_key, refuse_overrides
from gtstub.errors import ToolchainError
from gtstub.frameworks.dace import dace_config
from tests.support.checkout import ROOT

PAGE = (ROOT / "docs" / "dace-config.md").read_text(encoding="utf-8")


def rows(what: str) -> list[str]:
    """The variables whose rows say this."""
    found = re.findall(rf"^\| ((?:`\w+`(?:, )?)+) \| {what}", PAGE, re.MULTILINE)
    return [name for names in found for name in re.findall(r"\w+", names)]


def test_the_table_has_every_variable() -> None:
    assert set(rows(r"CMake's answer is in the key \|")) == set(ANSWERED)
    assert {name for name in rows(r"in the key \|") if not name.startswith("CMAKE_")} == set(IN_KEY)
    assert set(rows("no effect")) == set(WITHOUT_EFFECT)
    assert set(rows("in the key of programs for a GPU")) == set(dace_config.GPU_VARIABLES)


@pytest.mark.parametrize("name", [*rows(r"in the key \|"), "CMAKE_NOBODY_KNOWS"])
def test_a_variable_in_the_key(name: str) -> None:
    assert in_key({name: "x", "HOME": "y"}) == {name: "x"}
    assert in_key({name: ""}) == {}


@pytest.mark.parametrize("name", [*rows("no effect"), *rows("CMake's answer")])
def test_a_variable_without_effect(name: str) -> None:
    assert in_key({name: "x"}) == {}


@pytest.mark.parametrize("name", rows("in the key of programs for a GPU"))
def test_a_variable_of_gpus(name: str) -> None:
    environ = {name: "x"}
    assert dace_config.ingredients("cuda", "Release", {}, environ)["environment"] == environ
    assert dace_config.ingredients("cpu", "Release", {}, environ)["environment"] == {}
    assert in_key(environ) == {}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MAKEFILES", "mine.mk", "Variable 'MAKEFILES' adds makefiles to builds, which gtstub cannot check: unset it."),
        *(
            (name, value, f"Variable '{name}' {what}: unset it.")
            for name in ("MAKEFLAGS", "GNUMAKEFLAGS")
            for value, what in {
                " -- CXX_FLAGS=-Ofast": "replaces 'CXX_FLAGS' in the makefiles of builds",
                "C_DEFINES=-DX": "replaces 'C_DEFINES' in the makefiles of builds",
                "kew -- X=1": "lets the environment replace flags in builds",
                "-e": "lets the environment replace flags in builds",
                "w --environment-overrides": "lets the environment replace flags in builds",
            }.items()
        ),
    ],
)
def test_a_variable_that_is_refused(
    name: str, value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ToolchainError) as error:
        find(tmp_path)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "value", ["w", "w -j2 --jobserver-auth=3,4", " -- CXXFLAGS=-O1 ARGS=tests/c", "-Oline", "k", ""]
)
def test_make_itself_is_not_refused(value: str) -> None:
    refuse_overrides({"MAKEFLAGS": value})


TOOLCHAIN = """
include("${CMAKE_CURRENT_LIST_DIR}/included.cmake")
set(CMAKE_C_FLAGS_INIT "$ENV{MY_FLAGS}")
set(CMAKE_CXX_FLAGS_RELEASE_INIT "-DRELEASE")
"""


def test_cmakes_answer_follows_a_toolchain_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, included, cache = tmp_path / "toolchain.cmake", tmp_path / "included.cmake", tmp_path / "cache"
    plain = find(cache)
    file.write_text(TOOLCHAIN)
    included.write_text("add_compile_options(-msse4.2)\nadd_link_options(-Wl,-z,now)\n")
    monkeypatch.setenv("CMAKE_TOOLCHAIN_FILE", str(file))
    first = find(cache)
    assert "-msse4.2" in first.flags
    assert first.cxx_flags("Release", "-DOURS -O1")[:4] == ("-DOURS", "-O1", "-DRELEASE", "-O3")
    assert {"-msse4.2", "-g"} <= set(first.cxx_flags("Debug", ""))
    assert "-Wl,-z,now" in first.command(tmp_path / "x.c", tmp_path / "x.so")
    assert "sse4_2" in first.compiled_features("Release", "-O1")
    assert "sse4_2" not in plain.compiled_features("Release", "-O1")
    assert find(cache) == first

    keys = [plain.ingredients, first.ingredients]
    included.write_text("add_compile_options(-march=native)\n")
    keys.append(find(cache).ingredients)
    assert "sse2" in keys[-1]["cpu"]
    assert first.ingredients["cpu"] == []
    included.write_text("add_compile_options(-march=native) # the same flags\n")
    keys.append(find(cache).ingredients)
    monkeypatch.setenv("MY_FLAGS", "-DMINE")
    keys.append(find(cache).ingredients)
    assert "-DMINE" in find(cache).flags
    assert not any(key in keys[:i] for i, key in enumerate(keys))
    monkeypatch.delenv("CMAKE_TOOLCHAIN_FILE")
    assert find(cache) == plain


def test_arguments_of_daces_cmake_are_passed(tmp_path: Path) -> None:
    file = tmp_path / "toolchain.cmake"
    file.write_text("add_compile_options(-ffast-math)\n")
    found = find(tmp_path / "cache", arguments=[f"-DCMAKE_TOOLCHAIN_FILE={file}"])
    assert "-ffast-math" in found.cxx_flags("Release", "")
    assert "-ffast-math" not in find(tmp_path / "cache").cxx_flags("Release", "")


def test_values_in_the_environment_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = find(tmp_path)
    monkeypatch.setenv("CMAKE_BUILD_TYPE", "Debug")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    assert find(tmp_path).ingredients == plain.ingredients
    monkeypatch.setenv("CPATH", str(tmp_path))
    monkeypatch.setenv("CMAKE_PREFIX_PATH", str(tmp_path))
    expected = {"CPATH": str(tmp_path), "CMAKE_PREFIX_PATH": str(tmp_path)}
    assert find(tmp_path).ingredients == {**plain.ingredients, "environment": expected}
