"""gt4py's runner of compilations with gtstub's around it: wrapped backends, and other backends beside ours."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import config
from gt4py.next.otf import arguments, compilation_tasks, runners
from gt4py.next.program_processors.runners.dace import run_dace_cpu_noopt

import gtstub
from gtstub.entries.building.workers import workers
from gtstub.entries.cache.store import open_cache
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py import fingerprint
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


# --- The workers ------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _double(a: FieldI) -> FieldI:
    return 2.0 * a


@gtx.program
def double(a: FieldI, out: FieldI) -> None:
    _double(a, out=out)


@gtx.field_operator
def _half(a: FieldI) -> FieldI:
    return 0.5 * a


@gtx.program
def half(a: FieldI, out: FieldI) -> None:
    _half(a, out=out)


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)


def builder(program: Any) -> int:
    """The process that has compiled the only variant of a program."""
    (variant,) = program.variants
    return next(stage.pid for stage in variant.result.result().manifest().built.stages if stage.name == "translation")


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(config, "BUILD_JOBS_MODE", config.BuildJobsMode.PROCESS)
    monkeypatch.setattr(config, "BUILD_JOBS", 1)
    runners.reset_default_runner()
    yield
    runners.reset_default_runner()
    workers.end()


@pytest.mark.usefixtures("one_worker")
def test_one_worker_builds_all_programs(backend: plugin.StubBackend) -> None:
    """Also those that come after all others were waited for, by gtstub's function or by gt4py's."""
    pids = []
    for program, wait in ((triple, gtstub.wait_for_compilation), (double, gtx.wait_for_compilation), (half, None)):
        compiled = gtstub.compile(program, backend=backend, offset_provider={})
        if wait is not None:
            wait()
        pids.append(builder(compiled))
    assert len(set(pids)) == 1
    assert pids[0] != os.getpid()


@pytest.mark.usefixtures("one_worker")
def test_builds_that_calls_wait_for_overtake(backend: plugin.StubBackend, tmp_path: Path) -> None:
    """Those of gt4py's calls at once, those of `gtstub.compile()` when they are called."""
    busy = workers.submit((wait_for, (tmp_path / "go",)), os.getpid)
    last, called = (gtstub.compile(each, backend=backend, offset_provider={}) for each in (triple, double))
    a, outs = gtx.as_field([I], np.arange(4.0)), [gtx.as_field([I], np.zeros(4)) for _ in range(2)]
    calls = [
        threading.Thread(target=called, args=(a, outs[0])),
        threading.Thread(target=half.with_backend(backend), args=(a, outs[1]), kwargs={"offset_provider": {}}),
    ]
    for call in calls:
        call.start()
    first = workers._waiting[0]
    for _ in range(1200):
        if len(workers._waiting) == 3 and first is workers._waiting[-1]:
            break
        time.sleep(0.05)
    (tmp_path / "go").touch()
    for call in calls:
        call.join()
    last.wait()
    assert busy.result() != os.getpid()
    np.testing.assert_array_equal([out.asnumpy() for out in outs], [2.0 * np.arange(4.0), 0.5 * np.arange(4.0)])
    times = {manifest.name: manifest.built.time for manifest in (each.manifest() for each in open_cache().entries())}
    assert len(times) == 3
    assert max(times, key=lambda name: times[name]) == "triple"
