"""gt4py's runner of compilations with gtstub's around it: wrapped backends, and other backends beside ours."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next.otf import arguments, compilation_tasks, runners
from gt4py.next.program_processors.runners.dace import run_dace_cpu_noopt

import gtstub
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.internals import move_to_front
from gtstub.frameworks.gt4py.runner import FindingRunner

I = gtx.Dimension("I")
FieldI = gtx.Field[[I], gtx.float64]


@gtx.field_operator
def _triple(a: FieldI) -> FieldI:
    return 3.0 * a


@gtx.program
def triple(a: FieldI, out: FieldI) -> None:
    _triple(a, out=out)


class Wrapper:
    """Forwards to a backend, as a model's own instrumentation may do."""

    def __init__(self, backend: plugin.StubBackend) -> None:
        self.backend, self.compilations = backend, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def compile(self, program: Any, compile_time_args: arguments.CompileTimeArgs) -> Any:
        self.compilations += 1
        return self.backend.compile(program, compile_time_args)


@dataclasses.dataclass
class Recorder:
    """A runner that keeps what it is given."""

    tasks: list[runners.CompilationTask] = dataclasses.field(default_factory=list)

    def submit(self, task: runners.CompilationTask) -> concurrent.futures.Future[Any]:
        self.tasks.append(task)
        return concurrent.futures.Future()

    def shutdown(self, wait: bool = True) -> None:
        pass


MODES: dict[str, Callable[[Path], runners.Runner]] = {
    "serial": lambda _: runners.SerialRunner(),
    "thread": lambda _: runners.ThreadRunner(1),
    "process": lambda directory: runners.ProcessRunner(1, str(directory)),
}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = MODES[request.param](tmp_path)
    monkeypatch.setattr(runners, "_default_runner", FindingRunner(own))
    yield
    own.shutdown()


@pytest.mark.filterwarnings("ignore:Compiling 'run_dace_cpu_gtstub' in the calling thread")
@pytest.mark.usefixtures("mode")
def test_a_backend_around_ours_works_in_all_modes(backend: plugin.StubBackend) -> None:
    wrapper = Wrapper(backend)
    a, out = gtx.as_field([I], np.arange(4.0)), gtx.as_field([I], np.zeros(4))
    triple.with_backend(wrapper)(a, out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), 3.0 * np.arange(4.0))
    assert wrapper.compilations == 1


def task_of(backend: Any) -> runners.CompilationTask:
    types = triple.__gt_type__().definition.pos_or_kw_args
    compile_time_args = arguments.CompileTimeArgs(
        args=tuple(types.values()),
        kwargs={},
        offset_provider={},
        column_axis=None,
        argument_descriptor_contexts={},
    )
    return compilation_tasks.make_compilation_task(backend, triple.definition_stage, compile_time_args)


def test_tasks_of_other_backends_and_of_missing_entries_are_handed_on_as_they_are(
    backend: plugin.StubBackend,
) -> None:
    recorder = Recorder()
    runner = FindingRunner(recorder)
    tasks = [task_of(each) for each in (run_dace_cpu_noopt, Wrapper(backend), backend)]
    for task in tasks:
        assert not runner.submit(task).done()
    assert [id(task) for task in recorder.tasks] == [id(task) for task in tasks]


def test_a_found_entry_needs_no_runner(backend: plugin.StubBackend) -> None:
    entry = backend.executor(task_of(backend).construct_compilable(False))
    recorder = Recorder()
    assert FindingRunner(recorder).submit(task_of(backend)).result() == entry
    assert recorder.tasks == []


def test_a_program_is_read_once_for_its_build(backend: plugin.StubBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that looks for the entry is the one that is built."""
    read, reads = fingerprint.read, []

    def count(*arguments: Any) -> Any:
        reads.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(fingerprint, "read", count)
    gtstub.compile(triple, backend=backend, offset_provider={}).wait()
    assert len(reads) == 1


# --- Builds that a call waits for -------------------------------------------------------------------------------------


def submit(runner: Any, script: str, folder: Path) -> concurrent.futures.Future[Any]:
    command = ["sh", "-c", script]
    future: concurrent.futures.Future[Any] = runner._pool.submit(subprocess.check_call, command, cwd=folder)
    return future


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Any]:
    """A runner of gt4py's with one worker process, which is busy until there is a file 'go'."""
    runner: Any = runners.ProcessRunner(1, str(tmp_path))
    for _ in range(3):  # One runs, two have been handed on.
        submit(runner, "until [ -e go ]; do sleep 0.05; done", tmp_path)
    yield runner
    (tmp_path / "go").touch()
    runner.shutdown()


def test_a_build_overtakes_others(pool: Any, tmp_path: Path) -> None:
    futures = {name: submit(pool, f"printf {name} >>order", tmp_path) for name in "abcd"}
    move_to_front(pool, futures["c"])
    move_to_front(pool, futures["b"])
    move_to_front(pool, concurrent.futures.Future())  # of another runner: nothing happens
    (tmp_path / "go").touch()
    concurrent.futures.wait(futures.values())
    assert (tmp_path / "order").read_text() == "bcad"
    move_to_front(pool, futures["d"])  # has ended


@pytest.mark.parametrize("runner", [runners.SerialRunner(), runners.ThreadRunner(1)])
def test_other_runners_keep_their_order(runner: Any) -> None:
    move_to_front(runner, concurrent.futures.Future())


def test_builds_that_calls_wait_for_overtake(backend: plugin.StubBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of gt4py's calls at once, those of `gtstub.compile()` when they are called."""
    moved: list[concurrent.futures.Future[Any]] = []
    submitted: list[concurrent.futures.Future[Any]] = []
    monkeypatch.setattr("gtstub.frameworks.gt4py.runner.move_to_front", lambda _, future: moved.append(future))

    class Runner(runners.ThreadRunner):
        def submit(self, task: Any) -> concurrent.futures.Future[Any]:
            submitted.append(super().submit(task))
            return submitted[-1]

    own = Runner(1)
    monkeypatch.setattr(runners, "_default_runner", FindingRunner(own))
    program = gtstub.compile(triple, backend=backend, offset_provider={})
    assert moved == []
    a, out = gtx.as_field([I], np.arange(4.0)), gtx.as_field([I], np.zeros(4))
    program(a, out)
    assert len(moved) == 1
    optimized = plugin.make_backend(gpu=False)
    triple.with_backend(optimized)(a, out, offset_provider={})
    assert len(moved) == 2
    assert moved == submitted
    own.shutdown()
