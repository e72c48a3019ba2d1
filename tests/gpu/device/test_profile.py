"""The times of a profile on the GPU agree with events of another library."""

from __future__ import annotations

import gtstub
from gtstub.cache.entry import Entry
from tests.gpu.device import arrays, programs

pytestmark = programs.needs_gpu

CALLS = 50
RESOLUTION = 0.001
"""Milliseconds by which each of two times of events may differ from the true one."""


def test_the_work_of_all_calls_takes_no_longer_than_the_time_around_it(
    gpu: arrays.Gpu, entries: dict[str, Entry]
) -> None:
    stream = gpu.stream()
    call = programs.prepare(gpu, entries["apply_diffusion_to_vn"], stream=stream, called=True)
    with gtstub.profile() as report:
        begin = gpu.event(stream)
        for _ in range(CALLS):
            call()
        end = gpu.event(stream)
        gpu.wait(stream)
    (times,) = report.programs
    assert times.run is not None
    assert times.run.gpu is not None
    assert times.run.calls == CALLS
    milliseconds = 1e3 * times.run.gpu.total
    assert 0 < milliseconds <= gpu.milliseconds(begin, end) + CALLS * 2 * RESOLUTION


@programs.needs_kernels
def test_work_that_waits_for_a_gate_is_not_counted_as_time_of_the_host(
    gpu: arrays.Gpu, entries: dict[str, Entry]
) -> None:
    """The GPU comes to the calls late; the time of their work is not the time that they waited."""
    stream = gpu.stream()
    call = programs.prepare(gpu, entries["apply_diffusion_to_vn"], stream=stream, called=True)
    with gtstub.profile() as report:
        gate = gpu.gate(stream)
        before = gpu.event(stream)
        call()
        call()
        end = gpu.event(stream)
        gate.open()
        gpu.wait(stream)
    (times,) = report.programs
    assert times.run is not None
    assert times.run.gpu is not None
    assert 0 < 1e3 * times.run.gpu.total <= gpu.milliseconds(before, end) + 4 * RESOLUTION
