"""The command line as a whole: its version, its help, wrong options."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub import __version__
from gtstub.cli.output import print_json
from tests.support.cli import run
from tests.support.sdfg_documents import mapped, sdfg, state

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


COMMANDS = (
    *("build", "cache", "check", "config", "debug", "doctor", "extract", "generate", "memory", "plan", "profile"),
    *("record", "replay", "report", "show"),
)


def test_version() -> None:
    assert run("--version").stdout == f"gtstub {__version__}\n"


def test_help_lists_commands_and_exit_codes() -> None:
    text = run("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in text
    assert "\n  Example:\n    gtstub doctor\n" in text
    for exit_code in (*range(10), 141):
        assert f"\n    {exit_code}  " in text
    assert "..." not in text.partition("Commands:")[2], "The summary of a command was cut off."


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert f"gtstub {command}" in result.stdout.partition("\n  Example:\n    ")[2]


def test_a_wrong_option_is_a_usage_error() -> None:
    assert run("plan", "--nonsense").exit_code == 2


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "gtstub", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gtstub {__version__}\n", "")


def test_a_command_does_not_import_what_others_need() -> None:
    """The rest would double its time and memory."""
    code = (
        "import sys; from gtstub.cli.app import main; main(['check', sys.argv[1]], standalone_mode=False);"
        "print({'gtstub.cli.build', 'gtstub.cli.cache', 'gtstub.stub.plan', 'gtstub.tools.recorded', 'hashlib'}"
        " & {*sys.modules})"
    )
    document = sdfg(state(mapped("a", "b")))
    Path("x.sdfg").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", code, "x.sdfg"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("x.sdfg: ")
    assert done.stdout.endswith("\nset()\n")


@pytest.mark.parametrize("filter_", ["repeat(1)", "1, last(repeat(1))"])
def test_filter_without_end_can_be_interrupted(filter_: str) -> None:
    """Its results are printed as they come."""
    command = [Path(sys.executable).with_name("gtstub"), "cache", "list", "--cache", ".", "--jq", filter_]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(60) == -signal.SIGINT


def test_results_before_an_error_are_printed() -> None:
    handler = signal.getsignal(signal.SIGINT)
    result = run("cache", "list", "--cache", ".", "--jq", '1, error("no"), 2')
    assert (result.exit_code, result.stdout) == (2, "1\n")
    assert signal.getsignal(signal.SIGINT) == handler


def test_a_reader_that_ends_before_is_no_finding() -> None:
    """'gtstub check' exits with 1 if it finds an error."""
    command = [Path(sys.executable).with_name("gtstub"), "cache", "list", "--cache", ".", "--jq", "range(1000000)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, b"")


def test_halves_of_surrogate_pairs_are_escaped(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """A manifest can contain them."""
    print_json({"a": "\ud800"})
    assert capsysbinary.readouterr().out == b'{\n "a": "\\ud800"\n}\n'
