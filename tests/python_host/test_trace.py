"""GTSTUB_TRACE in Python: what the timeline of a process has, and which process writes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import StaticArgument
from tests.support.hosting import Bound, run_script
from tests.support.signatures import program, scalar, sdfg
from tests.support.timelines import Timeline


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("trace"), toolchain)


SCRIPT = """
import os, sys, threading, time
from pathlib import Path
import gtstub
from gtstub import _host
from tests.support.hosting import good_arguments
from tests.support.sdfg_libraries import Recorder

program = _host.load(*sys.argv[1:3])
arguments = good_arguments()
for _ in range(4):
    program(**arguments)
"""


def trace(bound: Bound, text: str, path: Path) -> Timeline:
    printed = run_script(SCRIPT + text, bound.stub, bound.library, environment={"GTSTUB_TRACE": str(path)}.items())
    assert printed == ""
    timeline = Timeline.read(path)
    timeline.check_nesting()
    return timeline


def test_calls_of_threads_and_steps(bound: Bound, tmp_path: Path) -> None:
    text = """
def halo():
    time.sleep(0.001)

step = gtstub.Step([_host.bind(program, **arguments), halo, gtstub.Step([halo], "inner")], 'a "step"')
step()
del step
thread = threading.Thread(target=lambda: program(**good_arguments()))
thread.start()
thread.join()
try:
    program(**{**arguments, "n": 1.5})
except TypeError:
    pass
"""
    timeline = trace(bound, text, tmp_path / "trace.json")
    calls = timeline.named("call", "host")
    assert [span.track == "main thread" for span in calls] == [True] * 5 + [False]
    (step,) = timeline.named("step", 'a "step"')
    assert [step.contains(span) for span in calls] == [False] * 4 + [True, False]
    assert [step.contains(span) for span in timeline.named("function", "halo")] == [True, True]
    assert timeline.named("function", "halo")[0].duration >= 1000
    assert len(timeline.named("step", "inner")) == 1


def test_waits_for_the_call_of_another_thread(bound: Bound, tmp_path: Path) -> None:
    text = """
behaviour = Recorder(Path(sys.argv[2])).behaviour
behaviour.delay = 30_000
thread = threading.Thread(target=lambda: program(**good_arguments()))
thread.start()
while behaviour.running == 0:
    time.sleep(0.001)
program(**arguments)
thread.join()
"""
    timeline = trace(bound, text, tmp_path / "trace.json")
    waits = [span for span in timeline.named("wait", "host") if span.track == "main thread"]
    last = [span for span in timeline.named("call", "host") if span.track == "main thread"][-1]
    assert sum(span.duration for span in waits) > 1000
    assert all(span.end <= last.begin + 1 for span in waits)


def test_calls_that_fail_have_a_kind_of_their_own(bound: Bound, tmp_path: Path) -> None:
    text = """
other = _host.load(*sys.argv[1:3])
Recorder(Path(sys.argv[2])).behaviour.init_fails = True
try:
    other(**arguments)
except RuntimeError:
    pass
"""
    timeline = trace(bound, text, tmp_path / "trace.json")
    assert len(timeline.named("call", "host")) == 4
    assert len(timeline.named("failed call", "host")) == 1


def test_names_have_the_static_arguments(tmp_path: Path, toolchain: Toolchain) -> None:
    signature = dataclasses.replace(
        program("fixed", flag=scalar("bool"), n=scalar("int8")),
        static_arguments=(StaticArgument("flag", True), StaticArgument("n", -3)),
    )
    binding = Bound(tmp_path, toolchain, sdfg(name="fixed"), signature)
    text = "from gtstub import _host; import sys\n_host.load(*sys.argv[1:3])(flag=True, n=-3)"
    variables = {"GTSTUB_TRACE": str(tmp_path / "trace.json")}
    run_script(text, binding.stub, binding.library, environment=variables.items())
    assert len(Timeline.read(tmp_path / "trace.json").named("call", "fixed(flag=true, n=-3)")) == 1


def test_a_forked_child_leaves_the_file_to_its_parent(bound: Bound, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    text = f"""
child = os.fork()
if child == 0:
    _host.load(*sys.argv[1:3])(**arguments)
    sys.exit()
os.waitpid(child, 0)
assert not os.path.exists({str(path)!r})
program(**arguments)
"""
    assert len(trace(bound, text, path).named("call", "host")) == 5


def test_a_process_without_events_writes_nothing(tmp_path: Path) -> None:
    run_script("import gtstub._host", environment={"GTSTUB_TRACE": str(tmp_path / "trace.json")}.items())
    assert not list(tmp_path.iterdir())


def test_what_python_adds(tmp_path: Path) -> None:
    text = """
import time
from gtstub import _host

begin = time.monotonic_ns()
_host.add_span("build", 'a "name"\\n\\u00e9', "a line", begin - 5_000_000, begin - 2_000_000)
_host.add_span("wait", "x", None, begin - 4_000_000, begin)
"""
    run_script(text, environment={"GTSTUB_TRACE": str(tmp_path / "trace.json")}.items())
    build, wait = sorted(Timeline.read(tmp_path / "trace.json").spans, key=lambda span: span.begin)
    assert (build.kind, build.name, build.track) == ("build", 'a "name"\n\u00e9', "a line")
    assert (wait.kind, wait.track) == ("wait", "main thread")
    assert (build.begin, build.duration, wait.duration) == (0, 3000, 4000)
    assert wait.begin == pytest.approx(1000, abs=10)
