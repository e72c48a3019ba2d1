"""'gtstub debug': the environment and the exit code of the command that it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import run

SHOWS = (sys.executable, "-c", "import os; print(os.environ['GTSTUB_CHECK'])")


def debug(*arguments: str, check: str | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, because the command's output is not click's."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GTSTUB_CHECK", "GTSTUB_BUILD_CHECKS")
    }
    if check is not None:
        environment["GTSTUB_CHECK"] = check
    command = [sys.executable, "-c", "from gtstub.cli.app import main; main(prog_name='gtstub')", "debug"]
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("option", "check", "expected"),
    [
        (("--check", "min q=0; warn"), "nan", "min q=0; warn"),
        ((), "progress", "progress"),
        ((), None, "finite"),
        ((), "", "finite"),
        ((), "0", "finite"),
        (("--check", ""), "nan", ""),
    ],
)
def test_a_command_is_told_what_to_check(option: tuple[str, ...], check: str | None, expected: str) -> None:
    done = debug(*option, "--", *SHOWS, check=check)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected}\n", "")


def test_a_command_is_told_to_build_checks() -> None:
    shows = "import os; print([os.environ.get(name) for name in ('GTSTUB_CHECK', 'GTSTUB_BUILD_CHECKS')])"
    command = ("--", sys.executable, "-c", shows)
    assert debug("--build-checks", "--check", "min q=0", *command).stdout == "['min q=0', '1']\n"
    assert debug(*command).stdout == "['finite', None]\n"


def test_exit_codes_are_those_of_the_command(tmp_path: Path) -> None:
    for then, expected in {"": 0, "sys.exit(7)": 7, "os.kill(os.getpid(), 9)": 128 + 9}.items():
        assert debug(sys.executable, "-c", f"import os, sys; {then}").returncode == expected
    done = debug("--", "no-such-command")
    assert (done.returncode, done.stderr) == (1, "'no-such-command' cannot be run: No such file or directory.\n")


def test_a_wrong_text_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    command = (sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')")
    said = "Check 'max q' must have the form 'max PATTERN=NUMBER'.\n"
    for option, check, place in ((("--check", "max q"), None, "--check"), ((), "max q", "GTSTUB_CHECK")):
        done = debug(*option, *command, check=check)
        assert (done.returncode, done.stderr.endswith(f"Error: Invalid value for {place}: {said}")) == (2, True)
    assert not (tmp_path / "ran").exists()


def test_there_must_be_a_command() -> None:
    result = run("debug", "--check", "nan")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "Error: Missing argument 'COMMAND...'.")
