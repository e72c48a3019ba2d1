"""The program that most tests of the host call, and a limit for those that could wait forever."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator

import pytest

from gtstub.toolchain.compiler import Toolchain
from tests.support.hosting import Bound


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
