"""'gtstub extract' where it needs no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.cli import run

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_extract_without_dace() -> None:
    code = "import sys; sys.modules['dace'] = None; from gtstub.cli.app import main; main()"
    arguments = [sys.executable, "-c", code, "extract", "halve.sdfg"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    expected = (
        "'gtstub extract' needs Python package 'dace': \"pip install '.[gt4py]'\" in a checkout of gtstub, or with the"
        " path of its wheel instead of '.'.\n"
    )
    assert result.stderr == expected


def test_extract_with_wrong_settings() -> None:
    for arguments in (["model:gather", "--static", "factor"], ["halve.sdfg", "--static", "factor=2"]):
        result = run("extract", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("Usage: gtstub extract ")
