"""gtstub as it is installed, and the program 'scale', for the tests of the CMake package."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtstub.install import FOLDER
from tests.support import scale_program as scale
from tests.support.cmake_projects import ALONE, FROM_PACKAGE, ROOT, cmake


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where gtstub is installed, in each way. The one that is built here is not optimised, which takes a third."""
    folder = tmp_path_factory.mktemp("alone")
    cmake("-S", ROOT, "-B", folder / "build", "-DGTSTUB_PYTHON=OFF", "-DCMAKE_C_FLAGS_RELEASE=-DNDEBUG")
    cmake("--build", folder / "build")
    cmake("--install", folder / "build", "--prefix", folder / "installed")
    moved = folder / "moved"
    (folder / "installed").rename(moved)  # it may be copied to where it is used
    return {FROM_PACKAGE: FOLDER, ALONE: moved}


@pytest.fixture(params=[FROM_PACKAGE, ALONE])
def root(request: pytest.FixtureRequest, roots: dict[str, Path]) -> Path:
    return roots[request.param]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    scale.write_sources(folder)
    return folder
