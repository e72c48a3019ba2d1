"""'gtstub trace': what it runs, what it says, and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.cli import run, run_installed
from tests.support.timelines import Timeline

OPEN = "open it in https://ui.perfetto.dev, or without internet in chrome://tracing."

SCRIPT = """
import sys
from gtstub import _host
_host.add_span("wait", "x", None, 1, 2)
sys.exit(int(sys.argv[1]))
"""


def command(status: int = 0) -> Sequence[str]:
    return ("--", sys.executable, "-c", SCRIPT, str(status))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for variable in ("GTSTUB_TRACE", "GTSTUB_TRACE_EVENTS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("status", [0, 3])
def test_a_command_is_run(status: int) -> None:
    done = run_installed("trace", *command(status))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", f"'trace.json' was written: {OPEN}\n")
    assert [span.name for span in Timeline.read(Path("trace.json")).spans] == ["x"]


def test_options_are_those_of_the_variables() -> None:
    text = "import os; print(os.environ['GTSTUB_TRACE'], os.environ['GTSTUB_TRACE_EVENTS'])"
    done = run_installed("trace", "-o", "a/b.json", "--events", "100", sys.executable, "-c", text)
    assert done.stdout == f"{Path.cwd()}/a/b.json 100\n"
    assert done.returncode == 1
    assert done.stderr == "No timeline was written: no program was loaded, or a signal has ended the process.\n"


def test_a_file_of_an_earlier_run_does_not_count() -> None:
    Path("trace.json").write_text("", encoding="utf-8")
    done = run_installed("trace", "true")
    assert done.returncode == 1


def test_files_of_ranks_are_merged() -> None:
    shell = " & ".join(
        f"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK={rank} {sys.executable} -c '{SCRIPT}' 0" for rank in range(2)
    )
    done = run_installed("trace", "-o", "run.json", "--", "sh", "-c", f"{shell}; wait")
    assert done.returncode == 0
    merging = "gtstub trace merge run-0.json run-1.json -o merged.json"
    assert done.stderr == f"2 files were written. To open them together: {merging}\n"
    merged = run(*merging.split()[1:])
    assert (merged.exit_code, merged.stderr) == (0, f"'merged.json' was written: {OPEN}\n")
    assert sorted(span.process for span in Timeline.read(Path("merged.json")).spans) == ["rank 0", "rank 1"]


def test_what_cannot_be_merged() -> None:
    Path("a.json").write_text("{}", encoding="utf-8")
    refused = run("trace", "merge", "a.json", "-o", "b.json")
    assert refused.stderr == "'a.json' is no whole timeline that GTSTUB_TRACE has written.\n"
    assert refused.exit_code == 3
    missing = run("trace", "merge", "none.json", "-o", "b.json")
    assert missing.exit_code == 7


def test_a_command_that_does_not_exist() -> None:
    done = run_installed("trace", "no-such-command")
    assert (done.returncode, done.stderr) == (1, "'no-such-command' cannot be run: No such file or directory.\n")


def test_help_lists_merge() -> None:
    shown = run("trace", "-h")
    assert "merge  Make one timeline of those of several processes." in shown.output
    assert run("trace").exit_code == 2
