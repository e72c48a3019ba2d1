"""The groups of `tests/conftest.py` reach xdist, which sends all tests of a group to one worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.checkout import ROOT

TESTS = """
import types
import pytest

@pytest.mark.parametrize("case", [types.SimpleNamespace(name="gather")])
def test_program(case):
    pass

@pytest.fixture(params=["gcc"])
def build(request):
    pass

def test_host(build):
    pass
"""


def test_groups_are_in_the_names_that_xdist_schedules_by(tmp_path: Path) -> None:
    (tmp_path / "test_groups.py").write_text(TESTS)
    options = ("-p", "xdist.plugin", "-p", "tests.conftest", "-n", "1", "--dist", "loadgroup", "--verbose")
    command = [sys.executable, "-m", "pytest", *options, tmp_path]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # icon4py's plugins take seconds to import
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line.partition("::")[2].strip() for line in done.stdout.splitlines() if "PASSED" in line}
    assert found == {"test_program[case0]@gather", "test_host[gcc]@build gcc"}
