"""The programs that most tests of the host call, and a limit for those that could wait forever."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.handed_over import VALUE_ERROR, CStep, build_host, refused
from tests.support.hosting import Bound
from tests.support.scale_program import PROGRAM, SDFG, N, build_library
from tests.support.stubs import build_stub


@pytest.fixture(scope="session")
def host_program(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("host"), toolchain)


@pytest.fixture
def bound(host_program: Bound) -> Iterator[Bound]:
    """Without records of other tests."""
    yield host_program
    host_program.recorder.clear()


@pytest.fixture
def no_deadlock() -> Iterator[None]:
    """A deadlock that holds the GIL can be ended by C code only."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


# --- The program 'scale', in calls that are bound ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Path, Path]:
    """Its stub and its library."""
    folder = tmp_path_factory.mktemp("scale")
    build_library(folder)
    return build_stub(SDFG, PROGRAM, folder, toolchain), folder / "libscale.so"


@pytest.fixture
def scale(parts: tuple[Path, Path]) -> _host.Program:
    return _host.load(*parts)


@pytest.fixture
def now() -> np.ndarray:
    return np.ones(N)


@pytest.fixture
def new() -> np.ndarray:
    return np.zeros(N)


# --- Steps that are handed over ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C host."""
    return build_host(tmp_path_factory.mktemp("host"))


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Fails a test that has taken back fewer steps than it has handed over."""
    yield
    with refused(VALUE_ERROR, "No step was handed over as '', nor under any other name."):
        CStep("")
