"""The command line in tests: in this process, and as it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from gtstub.cli.app import main
from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="gtstub")


def run_installed(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command that the wheel installs, in a process of its own."""
    command = Path(sys.executable).with_name("gtstub")
    return subprocess.run([command, *arguments], env=env, capture_output=True, text=True, check=False)


def write_signatures(
    directory: Path = Path(), sdfg_: SdfgSignature = WHOLE_SDFG, program_: ProgramSignature = WHOLE_PROGRAM
) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "sdfg.json").write_text(sdfg_to_json(sdfg_), encoding="utf-8")
    (directory / "program.json").write_text(program_to_json(program_), encoding="utf-8")


def names_in(directory: str) -> list[str]:
    return sorted(file.name for file in Path(directory).iterdir())


def assert_refused(result: Result, exit_code: int, message: str) -> None:
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", f"{message}\n")
