"""gtstub_add_program(... ENTRY): cache entries are found by name when a project is configured."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from tests.support import scale_program as scale
from tests.support.cmake_projects import ALONE, FROM_PACKAGE, HOSTS, cmake

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(entries LANGUAGES C)
set(ENTRY scale CACHE STRING "")
find_package(gtstub REQUIRED)
gtstub_add_program(scale ENTRY ${ENTRY} CACHE ../cache)
add_executable(host_c host.c)
target_link_libraries(host_c PRIVATE scale)
target_compile_definitions(host_c PRIVATE "ENTRY=\\"$<TARGET_FILE_DIR:scale>\\"")
"""


def publish(cache: Cache, key: str, times: int = 1, **baked: int) -> Path:
    """An entry of 'scale', which multiplies by `times` in addition."""
    with cache.private_directory(key) as directory:
        scale.build_library(directory, times)
        (directory / "library.c").unlink()
        (directory / "sdfg.json").write_text(sdfg_to_json(scale.SDFG))
        (directory / "program.json").write_text(program_to_json(scale.PROGRAM))
        (directory / "scale_stub.so").touch()
        return cache.publish(directory, key, Manifest("scale", "scale_stub.so", "libscale.so", baked=baked)).path


class Entries:
    """A project beside a cache."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.cache = Cache(folder / "cache")
        self._root = root
        self._sources, self._build = folder / "sources", folder / "build"
        self._sources.mkdir()
        shutil.copy(HOSTS / "host.c", self._sources)
        (self._sources / "CMakeLists.txt").write_text(PROJECT)

    def configure(self, *options: str, fails: bool = False) -> str:
        root = f"-Dgtstub_ROOT={self._root}"
        return cmake("-S", self._sources, "-B", self._build, root, *options, fails=fails)

    def build(self, fails: bool = False) -> str:
        return cmake("--build", self._build, fails=fails)

    def run(self) -> str:
        done = subprocess.run([self._build / "host_c"], capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture
def entries(roots: dict[str, Path], tmp_path: Path) -> Entries:
    return Entries(tmp_path, roots[FROM_PACKAGE])


def test_entry_is_found_by_its_name(entries: Entries) -> None:
    path = publish(entries.cache, "scale-0a")
    publish(entries.cache, "scaled-00").joinpath("sdfg.json").unlink()  # another name that begins so
    assert f"gtstub_add_program(scale): ENTRY 'scale' is {path}" in entries.configure()
    entries.build()
    assert entries.run() == "2.5 5 7.5\n"


def test_several_entries_are_listed_when_the_second_comes(entries: Entries) -> None:
    publish(entries.cache, "scale-0a", n=1)
    entries.configure()
    entries.build()
    publish(entries.cache, "scale-0b", times=2, n=2)
    printed = entries.build(fails=True)  # which configures again
    assert "gtstub_add_program(scale): ENTRY 'scale' fits several entries. 'gtstub cache path' prints:" in printed
    assert "Program 'scale' has 2 entries" in printed
    assert "Name one of them in ENTRY, by a value that was compiled in (scale@Edge.size=753) or by its key." in printed
    entries.configure("-DENTRY=scale@n=2")
    entries.build()
    assert entries.run() == "5 10 15\n"


def test_directory_is_an_entry_without_the_command(roots: dict[str, Path], tmp_path: Path) -> None:
    entries = Entries(tmp_path, roots[ALONE])
    publish(entries.cache, "scale-0a")
    printed = entries.configure(fails=True)
    assert "the program 'gtstub', which finds the entry 'scale', was not found" in printed
    assert "which generates the stub" in entries.configure("-DENTRY=../cache/scale-0a", fails=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("ENTRY scale CACHE cache", "ENTRY 'scale' was not found. 'gtstub cache path' prints: The cache"),
        ("ENTRY", "ENTRY needs a value."),
        ("ENTRY scale CACHE", "CACHE needs a value."),
        ("CACHE cache", "CACHE needs an ENTRY."),
    ],
)
def test_refusals(arguments: str, message: str, roots: dict[str, Path], tmp_path: Path) -> None:
    text = "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub REQUIRED)\n"
    (tmp_path / "CMakeLists.txt").write_text(f"{text}gtstub_add_program(p {arguments})\n")
    printed = cmake("-S", tmp_path, "-B", tmp_path / "build", f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}", fails=True)
    assert f"gtstub_add_program(p): {message}" in printed
    advice = "Build the program with 'gtstub build' or by a run of its model, or name its cache in CACHE or in the"
    assert (advice in printed) is ("not found" in message)
