"""Programs that tests need and that a machine may lack: such tests are left out, and the end of a run says so."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator

import pytest

from tests.support import target

PACKAGES = {
    "chromium": "chromium fonts-dejavu-core",
    "gcc": "gcc",
    "git": "git",
    "gfortran": "gfortran",
    "clang": "clang libclang-rt-dev",
    "clang++": "clang",
    "g++": "g++",
    "musl-gcc": "musl-tools",
    "mpirun": "openmpi-bin libopenmpi-dev",
    "ninja": "ninja-build",
    "nm": "binutils",
    "pkg-config": "pkg-config",
    "readelf": "binutils",
    "valgrind": "valgrind libc6-dbg",
}
"""The packages of Debian that have a program."""


def is_there(program: str) -> bool:
    return shutil.which(target.tool(program)) is not None


def reason(program: str) -> str:
    """The reason of a skipped test, from which `left_out` reads the program; compiler options may follow its name."""
    return f"{program} is not installed"


def need(*programs: str) -> None:
    """Skips the test unless all programs are installed."""
    for program in programs:
        if not is_there(program):
            pytest.skip(reason(program))


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_there(program), reason=reason(program))


def left_out(reasons: Iterable[str]) -> str:
    """
    A sentence about the tests that were skipped because a program of `PACKAGES` is missing, and the command that runs
    them; empty if there are none. `reasons` are those of all skipped tests.
    """
    found = [re.fullmatch(r"(\S+)(?: -\S+)? is not installed", text) for text in reasons]
    missing = [match[1] for match in found if match is not None and match[1] in PACKAGES]
    if not missing:
        return ""
    programs = sorted(set(missing))
    packages = sorted({package for program in programs for package in PACKAGES[program].split()})
    count = "1 test was" if len(missing) == 1 else f"{len(missing)} tests were"
    names = ", ".join(f"no {'MPI' if program == 'mpirun' else program}" for program in programs)
    return f"{count} left out ({names}). To run all: apt-get install {' '.join(packages)} && make test"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """After all that pytest sums up, and before its closing line, which stays the last one."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    if sentence := left_out(report.longrepr[2].removeprefix("Skipped: ") for report in reports):
        terminalreporter.write_line(sentence, yellow=True)
