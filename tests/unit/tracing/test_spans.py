"""What Python adds to the timeline of its process before programs are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtstub.entries.building.worker import State
from gtstub.entries.spans import is_traced
from tests.support.hosting import run_script
from tests.support.timelines import Timeline


def trace(text: str, path: Path, *arguments: object) -> Timeline:
    assert run_script(text, *arguments, environment={"GTSTUB_TRACE": str(path)}.items()) == ""
    timeline = Timeline.read(path)
    timeline.check_nesting()
    return timeline


def test_stages_of_a_build_are_on_the_lines_of_their_processes(tmp_path: Path) -> None:
    text = """
import time
from gtstub.entries.cache.manifest import BuildStage
from gtstub.entries.spans import add_build

now = time.time()
stages = [BuildStage("lowering", now - 4, 1.5, 11), BuildStage("compilation", now - 2, 1.0, 12)]
stages.append(BuildStage("stub", now - 2, 0.5, 12))
for _ in range(2):  # an entry that is loaded twice was built once
    add_build("smooth-1", "smooth", now, stages)
add_build("smooth-2", "smooth", now - 3600, stages)  # before this process
"""
    lowering, compilation, stub = sorted(trace(text, tmp_path / "trace.json").spans, key=lambda span: span.track)
    assert [lowering.name, lowering.track] == ["smooth: lowering", "builds in process 11"]
    assert [compilation.name, compilation.track] == ["smooth: compilation", "builds in process 12"]
    assert [stub.name, stub.track] == ["smooth: stub", "stubs in process 12"]
    assert lowering.duration == pytest.approx(1.5e6, abs=10)
    assert compilation.begin - lowering.begin == pytest.approx(2e6, abs=10)


def test_lookups_loads_and_waits(tmp_path: Path) -> None:
    text = """
import sys, threading
from concurrent.futures import Future
from pathlib import Path
from gtstub.entries.building.pending import wait_for
from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache.lookup import Request
from gtstub.entries.cache.store import Cache
from tests.benchmarks.entry import build_entry
from tests.support.signatures import program, sdfg

cache = Cache(Path(sys.argv[1]))
request = Request("prog", {}, {}, cache)
assert request.find() is None
entry = build_once(cache, "prog-key", lambda: build_entry(sdfg(), program(), cache.root, "prog-key"))
entry.load()()
build = Future()
threading.Timer(0.02, build.set_result, [entry]).start()
wait_for({build: "smooth"})
wait_for({build: "smooth"})  # which is there
"""
    timeline = trace(text, tmp_path / "trace.json", tmp_path / "cache")
    assert [span.name.startswith("prog-") for span in timeline.spans if span.kind == "lookup"] == [True]
    assert len(timeline.named("wait", "the build of prog-key")) == 1
    (outer,), (inner,) = timeline.named("load", "prog-key"), timeline.named("load", "prog")
    assert outer.contains(inner)
    (wait,) = timeline.named("wait", "builds of smooth")
    assert wait.duration >= 10_000


def test_a_worker_has_no_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_TRACE", "trace.json")
    assert is_traced()
    assert "GTSTUB_TRACE" not in State.now().environment
    monkeypatch.setenv("GTSTUB_TRACE", "")
    assert not is_traced()
