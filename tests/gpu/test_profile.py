"""Profiles measure the work of calls by events on the stream, and no call waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gtstub
from gtstub.profiling.model import Profile
from gtstub.profiling.table import profile_table
from tests.gpu.test_errors import run
from tests.support.fake_cuda import FakeCuda
from tests.support.graphs import Captured
from tests.support.hosting import Bound


def test_events_measure_the_work_of_calls(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    stream = fake.stream(1)
    bound.program.stream = stream
    with gtstub.profile() as report:
        for _ in range(4):
            bound.program(vn, vn)
        log = fake.log()
    (times,) = report.programs
    assert times.run is not None
    assert times.run.calls == 3
    assert times.run.gpu is not None
    assert 0 < times.run.gpu.min <= times.run.gpu.max
    events = [line for line in log if line.startswith("cudaEventRecord")]
    assert len(events) >= 8
    assert {line.partition("stream=")[2] for line in events[-8:]} == {str(fake.stream_number(stream))}
    assert not [line for line in log if "Synchronize" in line]
    assert "GPU t_med" in [column.header for column in profile_table(report).columns]
    fake.clear()
    bound.program(vn, vn)
    assert not [line for line in fake.log() if "Event" in line]


def test_calls_beyond_those_that_can_be_pending_are_counted_but_not_measured(
    fake: FakeCuda, bound: Bound, vn: Any
) -> None:
    bound.program(vn, vn)
    fake.fail("cudaEventQuery", 600)  # the GPU has not come to any event
    fake.clear()
    with gtstub.profile() as report:
        for _ in range(200):
            bound.program(vn, vn)
        created = [line for line in fake.log() if line.startswith("cudaEventCreate")]
        assert fake.ran() == []
    (times,) = report.document["programs"]
    assert times["run"]["calls"] == 200
    assert times["run"]["gpu"]["total"] >= 64 * times["run"]["gpu"]["min"] > 0
    assert len(created) == 2 * 64


def test_work_that_has_ended_makes_room(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    fake.clear()
    with gtstub.profile():
        for _ in range(100):
            bound.program(vn, vn)
            fake.synchronize()
        assert len([line for line in fake.log() if line.startswith("cudaEventElapsedTime")]) >= 98


@pytest.mark.parametrize("function", ["cudaEventCreateWithFlags", "cudaEventRecord", "cudaEventElapsedTime"])
def test_an_error_of_a_measurement_is_not_left_to_others(function: str, fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    with gtstub.profile():
        bound.program(vn, vn)
        fake.synchronize()
        fake.fail(function, 2)
        bound.program(vn, vn)
        assert fake.call("cudaGetLastError") == 0
    assert fake.call("cudaGetLastError") == 0


def test_captured_calls_are_not_measured(fake: FakeCuda, bound: Bound, vn: Any) -> None:
    bound.program(vn, vn)
    fake.clear()
    with gtstub.profile() as report, Captured():
        bound.program(vn, vn)
    assert [each.run.gpu for each in report.programs if each.run] == [None]
    assert not [line for line in fake.log() if line.startswith("cudaEventRecord") and "captured" in line]


@pytest.mark.parametrize("ends", [True, False])
def test_the_end_of_a_process_does_not_wait_forever_for_the_gpu(ends: bool, tmp_path: Path) -> None:
    script = f"""
        import ctypes
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(programs[0]))  # it is not closed, which would wait for the GPU
        for _ in range(3):
            call(programs[0])
        if not {ends}:
            fake.fail("cudaEventQuery", 600)  # the GPU comes to no event
    """
    report, log = tmp_path / "report.json", tmp_path / "log"
    run(script, tmp_path / "run", {"GTSTUB_PROFILE": str(report), "FAKE_CUDA_LOG": str(log)})
    (times,) = json.loads(report.read_text(encoding="utf-8"))["programs"]
    assert times["run"]["calls"] == 2
    assert ("gpu" in times["run"]) == ends
    assert "cudaEventSynchronize" not in log.read_text(encoding="utf-8")


def test_programs_on_the_cpu_have_no_time_on_a_gpu() -> None:
    part = {"min": 1.0, "median": 1.0, "max": 1.0, "total": 1.0}
    run = {"calls": 1, "conversion": part, "sdfg": part, "whole": part}
    item = {"name": "p", "sdfg_digest": "", "static": {}, "initial": None, "run": run}
    profile = Profile({"schema": "gtstub/profile/1", "wall": 2.0, "programs": [item]})
    assert "GPU t_med" not in [column.header for column in profile_table(profile).columns]
