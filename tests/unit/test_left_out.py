"""The end of a run of tests without the programs that some of them need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest
from tests.support import programs
from tests.support.checkout import ROOT
from tests.support.programs import PACKAGES, left_out, reason

TESTS = """
from tests.support.programs import need, needs

@needs("gfortran")
def test_a_host():
    pass

def test_two_compilers():
    need("gfortran", "clang")

@needs("mpirun")
def test_ranks():
    pass

def test_all_the_same():
    pass
"""


def run(folder: Path, *options: str) -> list[str]:
    """The output of a small run with no program in PATH, line by line."""
    (folder / "test_some.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", programs.__name__, "-p", "no:cacheprovider", *options]
    environment = {
        **os.environ,
        "PATH": str(folder),
        "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("options", [("-rs",), ("-p", "xdist.plugin", "-n", "1")], ids=" ".join)
def test_the_end_of_a_run_says_what_was_left_out(options: tuple[str, ...], tmp_path: Path) -> None:
    lines = run(tmp_path, *options)
    assert lines[-2] == (
        "3 tests were left out (no gfortran, no MPI)."
        " To run all: apt-get install gfortran libopenmpi-dev openmpi-bin && make test"
    )
    assert lines[-1].startswith("1 passed, 3 skipped")
    assert sum("left out" in line for line in lines) == 1


def test_every_run_has_the_hook() -> None:
    assert conftest.pytest_terminal_summary is programs.pytest_terminal_summary


def test_other_reasons_are_not_counted() -> None:
    assert left_out(["root may write to every directory", "serialbox is not installed", reason("no-program")]) == ""


def test_a_compiler_without_its_sanitizer_is_named() -> None:
    assert left_out([reason("clang -fsanitize=address,undefined")]) == (
        "1 test was left out (no clang). To run all: apt-get install clang libclang-rt-dev && make test"
    )


def test_every_program_has_its_package() -> None:
    assert "apt-get install binutils" in left_out([reason("nm"), reason("readelf")])
    assert all(package for package in PACKAGES.values())
