"""What all tests share: goldens written anew, and what is built for many tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest

from gtstub.entries.toolchain import compiler as toolchains
from tests.support import goldens
from tests.support.compiled import share_libraries
from tests.support.programs import pytest_terminal_summary  # noqa: F401  a hook of pytest's
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import build_stub

# How long an example takes says nothing: others may be using the machine.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-goldens", action="store_true", help="write the files under tests/golden anew")


def pytest_configure() -> None:
    """Without 'make test', tests use a cache of their own instead of the user's. What caches share is in it, too."""
    if "GTSTUB_CACHE_DIR" not in os.environ:
        os.environ["GTSTUB_CACHE_DIR"] = tempfile.mkdtemp(prefix="gtstub-tests-")
        atexit.register(shutil.rmtree, os.environ["GTSTUB_CACHE_DIR"], ignore_errors=True)
    os.environ["GTSTUB_MACHINE_DIR"] = str(Path(os.environ["GTSTUB_CACHE_DIR"]).absolute() / "machine")
    share_libraries()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> goldens.Golden:
    return goldens.Golden(regenerate=bool(request.config.getoption("--regenerate-goldens")))


@pytest.fixture
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> toolchains.Toolchain:
    return toolchains.find(tmp_path_factory.mktemp("toolchain"))


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory, toolchain: toolchains.Toolchain) -> Path:
    """The files of an entry, for tests that only copy them."""
    folder = tmp_path_factory.mktemp("libraries")
    build_null_library(SMALL_SDFG, folder)
    build_stub(SMALL_SDFG, SMALL_PROGRAM, folder, toolchain)
    return folder


# Fixtures that build for many tests what takes seconds: the runtime for C hosts, for Fortran hosts, for CMake projects.
BUILDS = ("build", "build_of", "roots")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in its own hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Lowering a program takes up to a minute, and building the runtime seconds. All tests of one program, and all tests
    with one build, run in one worker, which makes it once.
    """
    for item in items:
        parameters = getattr(item, "callspec", None) and item.callspec.params
        case = parameters and parameters.get("case")
        if hasattr(case, "name"):
            item.add_marker(pytest.mark.xdist_group(case.name))
        for name in set(BUILDS) & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(f"{name} {(parameters or {}).get(name, '')}".strip()))
