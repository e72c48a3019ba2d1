"""The sdist and the wheel, built from this checkout: what is in them, and that they work where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import gtstub
from gtstub.abi import ABI
from tests.support.checkout import ROOT

pytestmark = pytest.mark.xdist_group("packaging")  # one worker builds, once


WITHOUT_OPTIMISATION = "--config-setting=cmake.define.CMAKE_C_FLAGS_RELEASE=-DNDEBUG"
"""What is in the files and where they are found does not depend on it. It takes most of the time of a build."""


def build(source: Path, output: Path, *arguments: str) -> None:
    options = ("--no-isolation", WITHOUT_OPTIMISATION, *arguments)
    command = [sys.executable, "-m", "build", *options, "--outdir", output, source]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


BUILT = (".venv/lib/python3/site-packages/other.py", "build/main.o", "dist/libgtstub.so", "generator/__pycache__/a.pyc")
"""What must not be in the sdist. The real folders have a hundred thousand files, all of which a build looks at."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and with the wheel that was built from the sdist alone."""
    checkout = tmp_path_factory.mktemp("checkout") / "gtstub"
    output = tmp_path_factory.mktemp("dist")
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=ignored)
    for name in BUILT:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    build(checkout, output)
    return output


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (sdist,) = built.glob("gtstub-*.tar.gz")
    return sdist


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("gtstub-*.whl")
    return wheel


def test_version_is_that_of_the_package() -> None:
    assert metadata.version("gtstub") == gtstub.__version__


def test_sdist_has_the_sources_and_nothing_that_was_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    for file in (
        "pyproject.toml",
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "generator/gtstub/stub/plan/model.py",
        "generator/gtstub/stub/plan/planner.py",
        "runtime/program/load.c",
        "Makefile",
        ".ci/install",  # which the Makefile calls
    ):
        assert file in files
    assert not [file for file in files if re.search(r"(^|/)(\.venv|build|dist|__pycache__)/|\.(so|o|pyc)$", file)]


def test_wheel_has_the_same_bytes_wherever_it_is_built(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with a longer path than the one where 'build' unpacks the sdist"
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    build(source, tmp_path, "--wheel")
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_wheel_has_every_part_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    for folder, prefix in (
        ("generator/gtstub", "gtstub"),
        ("templates", "gtstub/templates"),
        ("runtime/include", "gtstub/include"),
        ("runtime/fortran", "gtstub/fortran"),
    ):
        sources = {
            f"{prefix}/{path.relative_to(ROOT / folder)}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert sources
        assert sources <= files
    assert {f"gtstub/lib/{name}" for name in (f"libgtstub.so.{ABI}", "libgtstub.a")} <= files
    assert {f"gtstub/lib/pkgconfig/{name}.pc" for name in ("gtstub", "gtstub-static")} <= files
    assert [file for file in files if re.fullmatch(r"gtstub/_host\.[^/]*\.so", file)]
    assert [file for file in files if file.endswith("/licenses/LICENSE")]


def test_wheel_of_a_release_has_the_same_files_and_libraries(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    command = [sys.executable, ROOT / ".ci" / "release", "repair", wheel]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    repaired = tmp_path / done.stdout.strip()
    assert re.fullmatch(r"gtstub-\S+-manylinux_2_\d+_\w+\.whl", repaired.name)
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(repaired) as after:
        files = {name for name in before.namelist() if not name.endswith("/")}
        assert files == {name for name in after.namelist() if not name.endswith("/")}
        libraries = [name for name in files if ".so" in name]
        assert len(libraries) == 2
        assert all(before.read(name) == after.read(name) for name in libraries)


def test_every_c_file_is_built() -> None:
    listed = set(re.findall(r"runtime/[\w/]+\.c\b", (ROOT / "CMakeLists.txt").read_text()))
    assert listed == {str(path.relative_to(ROOT)) for path in (ROOT / "runtime").rglob("*.c")}


def test_libraries_find_each_other_wherever_the_package_is_put(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (host,) = (tmp_path / "gtstub").glob("_host.*.so")
    runtime = tmp_path / "gtstub" / "lib" / f"libgtstub.so.{ABI}"
    archive = tmp_path / "gtstub" / "lib" / "libgtstub.a"
    assert f"libgtstub.so.{ABI}\0".encode() in host.read_bytes()
    assert b"$ORIGIN/lib\0" in host.read_bytes()
    for library in (host, runtime, archive):
        assert str(ROOT).encode() not in library.read_bytes()


def test_wheel_can_be_imported_where_nothing_else_is_installed(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        "import sys; sys.path.append(sys.argv[1]); import gtstub._host, gtstub.stub.plan.model; print(gtstub.__file__)"
    )
    command = [tmp_path / "venv" / "bin" / "python", "-I", "-c", program, tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(tmp_path / "site" / "gtstub" / "__init__.py"), done.stderr


def test_tests_of_one_group_run_in_one_worker(request: pytest.FixtureRequest) -> None:
    """As far as pytest-xdist can tell: it groups by the end of a node id, and says nothing where there is none."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("This run has no groups.")
    assert request.node.nodeid.endswith("@packaging")


def test_frameworks_that_work_together_are_pinned() -> None:
    pinned = set(metadata.requires("gtstub") or ())
    assert 'dace==2.0.0a10; extra == "gt4py"' in pinned
