"""What DaCe keeps between builds: for which toolchain, for which SDFGs, where, and that libraries are the same."""

import dataclasses
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import dace
import pytest
from dace.libraries import blas, standard

import gtstub
from gtstub.entries.cache.entry import LOWERED_SDFG
from gtstub.entries.cache.inventory import inventory
from gtstub.entries.cache.process import this_process
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain import compiler
from gtstub.entries.toolchain.machine import BUILD_CACHES
from gtstub.errors import TrustError
from gtstub.frameworks.dace.build import Build, known_by
from gtstub.frameworks.dace.build_caches import DIRECTORY, build_caches, searches_packages
from gtstub.stub.signature.model import Device
from tests.support.own_cache import copy_answers, use_own_cache

CACHES = (DIRECTORY, "DACE_compiler_configure_cache", "DACE_compiler_command_cache")
"""What 'make test' sets, with which gtstub leaves DaCe's caches to the user."""

N = dace.symbol("N")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what CMake says of the compilers of this environment, which takes most of a second."""
    directory = tmp_path_factory.mktemp("answers")
    compiler.find(directory, (), *build_for().cmake)
    return directory


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, answers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the machine, caches in which CMake has answered, and no settings of DaCe's caches."""
    for cache in (tmp_path, tmp_path / "cache"):
        copy_answers(answers, cache)
    for name in CACHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GTSTUB_MACHINE_DIR", str(tmp_path / "machine"))
    return tmp_path / "machine"


@dace.program
def doubled(a: dace.float64[N]):
    a[:] = a * 2


@dace.program
def tripled(a: dace.float64[N]):
    a[:] = a * 3


def build_for(device: Device = "cpu", **overrides: Any) -> Build:
    return Build(device, "", "Release", overrides)


class Block:
    """What DaCe sees within `build_caches` in the environment of this moment."""

    def __init__(self, root: Path, sdfg: dace.SDFG | None = None, device: Device = "cpu", **overrides: Any) -> None:
        build = build_for(device, **overrides)
        toolchain = compiler.find(root, (), *build.cmake)
        with build.context(), build_caches(root, toolchain, build.settings, sdfg or dace.SDFG("empty"), device):
            self.directory = os.environ.get(DIRECTORY)
            self.configure = dace.Config.get_bool("compiler", "configure_cache")
            self.header = dace.Config.get_bool("compiler", "precompiled_header")
            self.commands = dace.Config.get_bool("compiler", "command_cache")
        assert DIRECTORY not in os.environ or os.environ[DIRECTORY] == self.directory


# --- Builds -----------------------------------------------------------------------------------------------------------


class Compiler:
    """A C++ compiler that writes down its commands."""

    def __init__(self, folder: Path) -> None:
        self.path, self._log = folder / "programs" / "c++", folder / "log"
        self.path.parent.mkdir()
        self.path.write_text(f'#!/bin/sh\necho "$@" >> "{self._log}"\nexec "{shutil.which("c++")}" "$@"\n')
        self.path.chmod(0o755)

    def commands_with(self, text: str) -> int:
        return self._log.read_text().count(text)


def test_a_second_build_asks_nothing_again_and_its_library_is_the_same(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in another cache."""
    spied, root = Compiler(tmp_path), tmp_path / "cache"
    monkeypatch.setenv("CXX", str(spied.path))
    use_own_cache(tmp_path / "first", monkeypatch)
    gtstub.program(tripled).compile()
    asked = spied.commands_with("CMakeCXXCompilerId.cpp")
    assert asked > 0
    assert spied.commands_with("dace_prewarm.h -o") == 1
    use_own_cache(root, monkeypatch)
    gtstub.program(doubled).compile()
    assert spied.commands_with("CMakeCXXCompilerId.cpp") == asked
    assert spied.commands_with("dace_prewarm.h -o") == 1
    assert spied.commands_with("-include dace_prewarm.h") == 2

    (directory,) = (machine / BUILD_CACHES).iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert not (root / BUILD_CACHES).exists()
    assert len(inventory(Cache(root))) == 1

    (entry,) = root.glob("*doubled-*")
    build = build_for()
    (stub,) = entry.glob("*_stub.c")
    interface = re.search(r'\.interface_digest = "(\w+)"', stub.read_text(encoding="utf-8"))
    assert interface is not None
    sdfg = dace.SDFG.from_file(str(entry / LOWERED_SDFG))
    with build.context(), known_by(sdfg, interface[1]):
        _, library = build.compile(sdfg, tmp_path / "without", map_checks=False)
    assert spied.commands_with("CMakeCXXCompilerId.cpp") > asked
    assert spied.commands_with("dace_prewarm.h -o") == 1
    assert library.read_bytes() == (entry / library.name).read_bytes()


# --- The directory ----------------------------------------------------------------------------------------------------


def test_each_toolchain_has_a_directory(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def directory(**overrides: Any) -> str:
        return str(Block(tmp_path / "cache", **overrides).directory)

    found = [directory()]
    assert directory() == found[0]
    assert Path(found[0]).parent == machine / BUILD_CACHES
    found.append(directory(**{"compiler.linker.args": "-s"}))
    for name, value in {
        "CXX": str(Compiler(tmp_path).path),
        "CXXFLAGS": "-O0",
        "LDFLAGS": "-Wl,-O2",
        "CMAKE_PREFIX_PATH": str(tmp_path),
        "LIBRARY_PATH": str(tmp_path),
    }.items():
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            found.append(directory())
    assert len(set(found)) == 7
    assert directory() == found[0]


def test_a_directory_is_of_one_path_cmake_dace_user_boot_and_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the toolchain is the same one."""
    build = build_for()
    toolchain = compiler.find(tmp_path / "cache", (), *build.cmake)

    def directory() -> str:
        with build.context(), build_caches(tmp_path / "cache", toolchain, build.settings, dace.SDFG("empty"), "cpu"):
            return os.environ[DIRECTORY]

    programs = tmp_path / "programs"
    programs.mkdir()
    cmake = programs / "cmake"
    cmake.write_text(f'#!/bin/sh\nexec "{shutil.which("cmake")}" "$@"\n')
    cmake.chmod(0o755)
    found = [directory()]
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    found.append(directory())
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    found.append(directory())
    with cmake.open("a") as script:
        script.write("# upgraded\n")
    found.append(directory())
    boot = dataclasses.replace(this_process(), boot="another boot")
    for target, value in {
        "gtstub.frameworks.dace.build_caches.metadata.version": lambda _: "another version",
        "gtstub.frameworks.dace.build_caches.os.getuid": lambda: 12345,
        "gtstub.frameworks.dace.build_caches.this_process": lambda: boot,
        "gtstub.frameworks.dace.build_caches._identity": lambda _: "another system",
    }.items():
        with monkeypatch.context() as changed:
            changed.setattr(target, value)
            found.append(directory())
    assert len(set(found)) == 8
    assert directory() == found[3]


def test_a_compiler_that_is_replaced_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spied = Compiler(tmp_path)
    monkeypatch.setenv("CXX", str(spied.path))
    found = Block(tmp_path / "cache").directory
    with spied.path.open("a") as script:
        script.write("# upgraded\n")
    assert Block(tmp_path / "cache").directory != found


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    directory = Path(str(Block(tmp_path).directory))
    for path in (directory, directory.parent):
        path.chmod(0o777)
        with pytest.raises(TrustError, match=path.name):
            Block(tmp_path)
        path.chmod(0o755)
    assert Block(tmp_path).directory == str(directory)


def test_a_cache_has_its_own_directory_if_that_of_the_machine_is_not_only_this_user_s(
    tmp_path: Path, machine: Path
) -> None:
    machine.mkdir()
    machine.chmod(0o755)
    assert Path(str(Block(tmp_path / "cache").directory)).parent == tmp_path / "cache" / BUILD_CACHES


def test_without_a_directory_nothing_is_kept(tmp_path: Path, machine: Path) -> None:
    compiler.find(tmp_path)
    machine.mkdir(0o700)
    (machine / BUILD_CACHES).write_text("a file in its place")
    found = Block(tmp_path)
    assert (found.directory, found.configure, found.header) == (None, False, False)


def test_one_thread_at_a_time(tmp_path: Path) -> None:
    inner: list[Block] = []
    build = build_for()
    toolchain = compiler.find(tmp_path, (), *build.cmake)
    with build_caches(tmp_path, toolchain, build.settings, dace.SDFG("empty"), "cpu"):
        thread = threading.Thread(target=lambda: inner.append(Block(tmp_path)))
        thread.start()
        thread.join()
    assert (inner[0].configure, inner[0].header) == (False, False)
    assert Block(tmp_path).configure


# --- What a user sets -------------------------------------------------------------------------------------------------


def test_a_user_keeps_his_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Block(tmp_path)
    assert (found.configure, found.header, found.commands) == (True, True, False)
    monkeypatch.setenv("DACE_compiler_precompiled_header", "0")
    assert not Block(tmp_path).header
    monkeypatch.setenv("DACE_compiler_configure_cache", "0")
    assert not Block(tmp_path).configure
    assert not Block(tmp_path, **{"compiler.configure_cache": False}).configure


def test_a_user_keeps_his_directory(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "own"))
    found = Block(tmp_path / "cache")
    assert (found.directory, found.configure, found.header) == (str(tmp_path / "own"), False, True)
    monkeypatch.setenv("DACE_compiler_configure_cache", "1")
    assert Block(tmp_path / "cache").configure
    assert not (machine / BUILD_CACHES).exists()


# --- SDFGs for which CMake looks for packages -------------------------------------------------------------------------


def sdfg_with(node: dace.nodes.Node) -> dace.SDFG:
    sdfg = dace.SDFG("with_a_node")
    inner = dace.SDFG("nested")
    inner.add_state().add_node(node)
    sdfg.add_state().add_nested_sdfg(inner, set(), set())
    return sdfg


def tasklet(environment: str) -> dace.nodes.Tasklet:
    made = dace.nodes.Tasklet("asking")
    made.environments = {environment}
    return made


def map_on(schedule: dace.ScheduleType) -> dace.nodes.MapEntry:
    return dace.nodes.MapEntry(dace.nodes.Map("walk", ["i"], dace.subsets.Range.from_string("0:4"), schedule))


@pytest.mark.parametrize(
    ("node", "searches"),
    [
        (blas.Dot("product"), True),
        (tasklet("dace.libraries.blas.environments.openblas.OpenBLAS"), True),
        (tasklet("dace.libraries.standard.environments.cuda.CUDA"), True),
        (map_on(dace.ScheduleType.MPI), True),
        (map_on(dace.ScheduleType.GPU_Device), True),
        (dace.nodes.NestedSDFG("elsewhere", None, set(), set(), path="elsewhere.sdfg"), True),
        (standard.Reduce("sum", "lambda a, b: a + b"), False),
        (tasklet("dace.libraries.standard.environments.cpu.CPU"), False),
        (map_on(dace.ScheduleType.CPU_Multicore), False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else f"{type(value).__name__} {value}",
)
def test_what_cmake_has_found_on_the_machine_is_not_used_again(
    tmp_path: Path, node: dace.nodes.Node, searches: bool
) -> None:
    sdfg = sdfg_with(node)
    assert searches_packages(sdfg) == searches
    found = Block(tmp_path, sdfg)
    assert found.configure == (not searches)
    assert found.header


def test_what_cmake_has_found_for_a_gpu_is_not_used_again(tmp_path: Path) -> None:
    found = Block(tmp_path, device="cuda")
    assert (found.configure, found.header) == (False, True)
