"""The work of calls on a GPU in a timeline, and which calls wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.test_errors import run
from tests.support.timelines import Timeline


def trace(script: str, folder: Path) -> tuple[Timeline, list[str]]:
    path, log = folder / "trace.json", folder / "log"
    run(script, folder / "run", {"GTSTUB_TRACE": str(path), "FAKE_CUDA_LOG": str(log)})
    timeline = Timeline.read(path)
    timeline.check_nesting()
    return timeline, log.read_text(encoding="utf-8").splitlines()


def test_work_is_on_the_line_of_its_stream(tmp_path: Path) -> None:
    script = """
        import time
        programs[1].stream = fake.stream(1)
        for _ in range(3):
            call(programs[0])
            time.sleep(0.01)  # the work of a call takes some ms on the stand-in
        call(programs[1])
        time.sleep(0.01)
    """
    timeline, log = trace(script, tmp_path)
    work = timeline.named("GPU", "diffusion")
    assert len(work) == len(timeline.named("call", "diffusion")) == 3
    assert {span.track for span in work} == {"GPU"}
    assert min(span.duration for span in work) >= 1000
    (other,) = timeline.named("GPU", "advection")
    assert other.track.startswith("GPU, stream 0x")
    assert len([line for line in log if line.startswith("cudaEventSynchronize")]) >= 2
    recorded = [line for line in log if line.startswith("cudaEventRecord")]
    assert len(recorded) >= 2 + 2 * 4  # an anchor for each program, and two for each call


def test_only_the_first_call_of_a_program_waits(tmp_path: Path) -> None:
    script = """
        call(programs[0])
        fake.clear()
        for _ in range(20):
            call(programs[0])
        assert not [line for line in fake.log() if "Synchronize" in line]
    """
    timeline, _ = trace(script, tmp_path)
    assert len(timeline.named("call", "diffusion")) == 21


@pytest.mark.parametrize("function", ["cudaEventCreateWithFlags", "cudaEventSynchronize", "cudaEventElapsedTime"])
def test_an_error_of_the_timeline_is_not_left_to_calls(function: str, tmp_path: Path) -> None:
    script = f"""
        fake.fail("{function}", 2)
        programs[0](vn, vn)
        assert fake.call("cudaGetLastError") == 0
        fake.fail("{function}", 0)
        programs[0](vn, vn)
        fake.synchronize()
    """
    timeline, _ = trace(script, tmp_path)
    assert len(timeline.named("call", "diffusion")) == 2
