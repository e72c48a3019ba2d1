"""What is said about builds, on a terminal and elsewhere, by one process, by its workers, and by ranks."""

from __future__ import annotations

import contextlib
import logging
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gtstub import ranks
from gtstub.entries.building import progress
from gtstub.entries.building.progress import Builds, News
from gtstub.entries.building.waiting import build_once
from gtstub.entries.building.worker import State, Worker
from gtstub.entries.building.workers import ShownBuild
from gtstub.entries.cache.claims import claiming
from gtstub.entries.cache.store import Cache
from gtstub.errors import CompilationError, ConfigError
from gtstub.ranks import Ranks

PATIENCE = 60
"""Seconds. A test that fails waits as long."""


@pytest.fixture(autouse=True)
def no_other_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process call the step that lowers a program alone: such a build never ends."""
    monkeypatch.setattr(progress.builds, "_under_way", {})


@pytest.fixture
def builds() -> Builds:
    return Builds()


def rank(monkeypatch: pytest.MonkeyPatch, number: int, size: int = 2) -> None:
    monkeypatch.setattr(ranks, "_chosen", Ranks(number, size))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was written on stderr, without the seconds; nothing is on stdout."""
    written = capsys.readouterr()
    assert written.out == ""
    return re.sub(r"\d+\.\d s", "<> s", written.err).splitlines()


# --- Lines ------------------------------------------------------------------------------------------------------------


def test_a_line_when_a_build_begins_and_when_it_ends(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    builds.begin("a-1", "a (n=1)")
    builds.begin("a-1", "a (n=1)")  # by another call
    builds.begin("b-1", "b")
    builds.queue("b-1")
    builds.end("a-1")
    builds.end("a-1")
    builds.end("b-1", CompilationError("no space\nin the cache"))
    assert lines(capsys) == [
        "gtstub: building a (n=1)",
        "gtstub: building b",
        "gtstub: built a (n=1) in <> s; under way: 1 waiting",
        "gtstub: could not build b: no space",
    ]


def test_a_line_lists_the_builds_that_are_under_way(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcdef":
        builds.begin(name, name)
        builds.queue(name)
    for name in "abcde":
        builds.note(News("claimed", name))
    builds.end("a")
    assert lines(capsys)[-1] == "gtstub: built a in <> s; under way: b, c, d and 1 more; 1 waiting"


def test_a_build_in_a_block_ends_with_it(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    with builds.building("a", "a"):
        pass
    with contextlib.suppress(ValueError), builds.building("a", "a"):
        raise ValueError("wrong")
    assert lines(capsys) == [
        "gtstub: building a",
        "gtstub: built a in <> s",
        "gtstub: building a",
        "gtstub: could not build a: wrong",
    ]


def test_a_future_that_something_waits_for(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    build: Future[Any] = Future()
    builds.follow("key", build, "a")
    build.set_result(None)
    cancelled: Future[Any] = Future()
    builds.follow("other", cancelled, "b")
    cancelled.cancel()
    assert lines(capsys) == [
        "gtstub: waiting for a",
        "gtstub: a is ready after <> s",
        "gtstub: waiting for b",
        "gtstub: could not build b: it was cancelled",
    ]


def test_names_cannot_break_a_line(builds: Builds, capsys: pytest.CaptureFixture[str]) -> None:
    builds.begin("a", "a\x1b[2J")
    assert lines(capsys) == ["gtstub: building a\\u001b[2J"]


def test_what_is_closed_is_not_written_to(builds: Builds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
    builds.begin("a", "a")
    monkeypatch.setattr(sys, "stderr", None)
    builds.end("a")
    assert (tmp_path / "log").read_text() == ""


# --- Settings ---------------------------------------------------------------------------------------------------------


def test_a_setting_leaves_the_lines_out(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GTSTUB_PROGRESS", "OFF")
    builds.begin("a", "a")
    builds.end("a")
    assert lines(capsys) == []
    monkeypatch.setenv("GTSTUB_PROGRESS", "of")
    with pytest.raises(ConfigError) as caught:
        builds.begin("a", "a")
    assert str(caught.value) == "GTSTUB_PROGRESS cannot be 'of'. Did you mean: 'off'?"


@pytest.mark.parametrize("setting", ["auto", "off"])
def test_a_logger_that_takes_them_gets_the_lines(
    builds: Builds,
    setting: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("GTSTUB_PROGRESS", setting)
    with caplog.at_level(logging.INFO, "gtstub"):
        builds.begin("a", "a")
    assert caplog.record_tuples == [("gtstub", logging.INFO, "building a")]
    assert lines(capsys) == []


# --- Ranks ------------------------------------------------------------------------------------------------------------


def test_the_first_rank_speaks_of_all_builds(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rank(monkeypatch, 0)
    builds.begin("a", "a")
    builds.note(News("waits", "a", "process 7 on host 'x'"))
    builds.end("a")
    said = lines(capsys)
    assert re.fullmatch(
        r"gtstub: rank 0: a waits for process 7 on host 'x', which has been building it since \d\d:\d\d:\d\d",
        said.pop(1),
    )
    assert said == [
        "gtstub: rank 0: building a",
        "gtstub: rank 0: a is ready after <> s: process 7 on host 'x' has built it",
    ]


def test_another_rank_speaks_of_what_it_builds(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rank(monkeypatch, 1)
    for name in "ab":
        builds.begin(name, name)
    builds.note(News("waits", "a", "process 7 on host 'x'"))
    builds.note(News("claimed", "b"))
    for name in "ab":
        builds.end(name)
    assert lines(capsys) == ["gtstub: rank 1: building b", "gtstub: rank 1: built b in <> s"]


# --- Other processes --------------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from gtstub.entries.cache.claims import claiming
with claiming(Path(sys.argv[1]), "prog-0123", 1):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_builder(root: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_long_wait_says_for_which_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LONG", 0.0)
    with another_builder(tmp_path) as other, ThreadPoolExecutor(1) as pool:
        built = pool.submit(build_once, Cache(tmp_path), "prog-0123", lambda: None)  # type: ignore[arg-type,return-value]
        begin = time.monotonic()
        while "prog-0123" not in progress.builds._under_way and time.monotonic() < begin + PATIENCE:
            time.sleep(0.01)
        other.communicate("")
        built.result(PATIENCE)
    progress.builds.end("prog-0123")
    said = lines(capsys)
    expected = rf"gtstub: prog waits for process {other.pid} on host '.*', which has been building it since [\d:]+"
    assert re.fullmatch(expected, said[0])
    assert said[1:] == ["gtstub: built prog in <> s"]  # by this process, when the other one had given up


def test_a_process_does_not_wait_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LONG", 0.0)
    with ThreadPoolExecutor(1) as pool:
        with claiming(tmp_path, "prog-0123", 1):
            built = pool.submit(build_once, Cache(tmp_path), "prog-0123", lambda: None)  # type: ignore[arg-type,return-value]
            time.sleep(0.1)
        built.result(PATIENCE)
    assert lines(capsys) == []


def tell(key: str) -> str:
    progress.builds.begin(key, "not said in a worker")
    progress.builds.note(News("waits", key, "process 7 on host 'x'"))
    return key


def test_the_news_of_a_worker_reach_the_process_that_it_works_for(capfd: pytest.CaptureFixture[str]) -> None:
    worker = Worker.start(State.now())
    try:
        worker.send(tell, "prog-0123")
        assert worker.receive_result().value == "prog-0123"
    finally:
        worker.end()
        progress.builds.end("prog-0123")
    said = capfd.readouterr().err.splitlines()
    assert [line.partition(" which")[0] for line in said] == [
        "gtstub: prog waits for process 7 on host 'x',",
        said[1],
    ]
    assert said[1].endswith(": process 7 on host 'x' has built it")


def test_a_forked_process_knows_nothing_of_the_builds_of_its_parent(tmp_path: Path) -> None:
    script = """
        import os
        from gtstub.entries.building.progress import builds
        builds.begin("a", "a")
        if os.fork() == 0:
            builds.end("a")
            builds.begin("b", "b")
            os._exit(0)
        os.wait()
        """
    assert run(script, tmp_path) == ["gtstub: building a", "gtstub: building b"]


def test_the_lines_of_threads_do_not_mix(tmp_path: Path) -> None:
    script = """
        import threading
        from gtstub.entries.building.progress import builds
        def build(number):
            for key in range(20):
                with builds.building((number, key), "x" * 200):
                    pass
        threads = [threading.Thread(target=build, args=[number]) for number in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        """
    said = run(script, tmp_path)
    whole = r"gtstub: (building x{200}|built x{200} in \d+\.\d s(; under way: .*)?)"
    assert len(said) == 2 * 8 * 20
    assert [line for line in said if not re.fullmatch(whole, line)] == []


def run(script: str, folder: Path) -> list[str]:
    (folder / "script.py").write_text("\n".join(line.removeprefix(" " * 8) for line in script.splitlines()))
    command = [sys.executable, folder / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stderr.splitlines()


# --- A terminal -------------------------------------------------------------------------------------------------------

ON_A_TERMINAL = """
import atexit, time
from gtstub.entries.building.progress import News, builds
from gtstub.entries.building.workers import ShownBuild
from concurrent.futures import Future

for name in ("first", "second"):
    builds.begin(name, name)
builds.note(News("waits", "second", "process 7 on host 'x'"))
build = ShownBuild()
def end():
    builds.end("first")
    builds.end("second")
    build.set_result(5)
import threading
threading.Timer(0.5, end).start()
print("result", build.result())
with builds.building("third", "third"):
    time.sleep(0.3)

@atexit.register
def build_at_exit():
    with builds.building("last", "last"):
        pass
"""


def on_a_terminal(tmp_path: Path, **environment: str) -> str:
    """What a terminal gets of a script."""
    (tmp_path / "script.py").write_text(ON_A_TERMINAL)
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"], stdin=theirs, stdout=theirs, stderr=theirs, env=variables
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # The terminal ends with the process.
        while some := os.read(ours, 4096):
            written += some
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    return written.decode()


def test_a_terminal_shows_a_bar_and_keeps_the_lines_of_what_is_ready(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    assert "0/2" in shown
    assert "first, second (by process 7 on host 'x')" in shown
    assert re.search(r"gtstub: built first in \d\.\d s\r\n", shown)
    assert "gtstub: second is ready after" in shown
    assert "result 5\r\n" in shown
    assert "third" in shown
    assert "gtstub: building third" not in shown
    assert "gtstub: building last\r\n" in shown  # A bar needs a thread, which the process cannot start any more.
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") > 0  # The cursor is there again.


@pytest.mark.parametrize("environment", [{"GTSTUB_PROGRESS": "lines"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_may_get_lines_only(tmp_path: Path, environment: dict[str, str]) -> None:
    written = on_a_terminal(tmp_path, **environment)
    assert "\x1b" not in written
    assert "gtstub: building third\r\n" in written


def test_waiting_for_a_build_ends_when_its_time_is_over() -> None:
    build = ShownBuild()
    with pytest.raises(TimeoutError):
        build.result(0.01)
    with pytest.raises(TimeoutError):
        build.exception(0.01)
    ending: Future[Any] = Future()
    build.follow(ending)
    threading.Timer(0.05, ending.set_exception, [OSError("no space")]).start()
    assert str(build.exception(PATIENCE)) == "no space"
    with pytest.raises(OSError, match="no space"):
        build.result(PATIENCE)
