"""'gtstub doctor' as its users meet it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.cli import run, run_installed

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_doctor_finds_what_the_tests_run_with() -> None:
    result = run_installed("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    assert "MISSING" not in result.stdout
    python = next(line for line in result.stdout.splitlines() if " Python " in line)
    assert python.startswith("ok")
    assert sys.executable in python


def test_doctor_as_json() -> None:
    document = json.loads(run("doctor", "--json").stdout)
    assert document["ok"]
    assert {"name", "ok", "found", "advice"} == document["checks"][0].keys()
    assert run("doctor", "--jq", ".ok").stdout == "true\n"


def test_doctor_without_a_compiler() -> None:
    result = run_installed("doctor", env={**os.environ, "CC": "/no/compiler"})
    assert result.returncode == 1
    assert "MISSING   C compiler" in result.stdout
    assert "\nC compiler: The C compiler '/no/compiler', which CC names, was not found: " in result.stdout
    result = run_installed("doctor", "--jq", ".checks[] | select(.ok | not) | .name", env={**os.environ, "CC": "/no"})
    assert (result.returncode, result.stdout) == (1, "C compiler\n")


def test_doctor_in_a_directory_that_was_deleted(tmp_path: Path) -> None:
    """CMake fails there, whatever is installed."""
    tmp_path.rmdir()
    result = run_installed("doctor")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "The current directory was deleted: change to another one.\n"


def test_doctor_finds_a_cache_that_others_can_write(tmp_path: Path) -> None:
    root, shared = tmp_path / "root", tmp_path / "shared"
    for directory in (root, shared):
        directory.mkdir(mode=0o755)
    environment = {**os.environ, "GTSTUB_CACHE_DIR": str(root), "GTSTUB_SHARED_CACHE_DIR": str(shared)}
    result = run_installed("doctor", env=environment)
    assert result.returncode == 0
    assert result.stdout.count(" cache ") == 2
    shared.chmod(0o777)
    result = run_installed("doctor", env=environment)
    assert result.returncode == 1
    assert "REFUSED   cache" in result.stdout
    assert f"\ncache: '{shared}' is not used: Directory '{shared}' of user " in result.stdout
    assert "can be written by everyone (mode 0777)" in result.stdout
