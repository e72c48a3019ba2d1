"""Calls return before their work is done, and their work is on the stream that the host has chosen."""

from __future__ import annotations

import numpy as np
import pytest

import gtstub
from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs
from tests.support import gpu_programs

pytestmark = programs.needs_gpu


@pytest.mark.parametrize("name", gpu_programs.PROGRAMS)
def test_a_call_returns_before_its_work_and_leaves_the_default_stream_alone(
    gpu: arrays.Gpu, entries: dict[str, Entry], name: str
) -> None:
    stream = gpu.stream()
    call = programs.prepare(gpu, entries[name], stream=stream, called=True)
    for _ in range(2):
        call()
    gpu.wait(stream)
    programs.check_returns_before_its_work(gpu, stream, call)


def test_all_programs_follow_the_stream_of_the_process(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    stream = gpu.stream()
    calls = [programs.prepare(gpu, entry, called=True) for entry in entries.values()]

    def call_all() -> None:
        for call in calls:
            call()

    with gtstub.stream(stream):
        for _ in range(2):
            call_all()
        gpu.wait(stream)
        programs.check_returns_before_its_work(gpu, stream, call_all)


def test_programs_on_two_streams_do_not_wait_for_each_other(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    one, other = gpu.stream(), gpu.stream()
    held = programs.prepare(gpu, entries["calculate_nabla4"], stream=one, called=True)
    free = programs.prepare(gpu, entries["apply_diffusion_to_vn"], stream=other, called=True)
    gate = gpu.gate(one)
    held()
    held_end = gpu.event(one)
    free()
    free_end = gpu.event(other)
    gpu.wait(other)
    assert gpu.is_complete(free_end)
    assert not gpu.is_complete(held_end)
    gate.open()
    gpu.wait(one)


def test_a_program_on_a_new_stream_waits_on_the_gpu_for_its_calls_on_the_old_one(
    gpu: arrays.Gpu, entries: dict[str, Entry]
) -> None:
    old, new = gpu.stream(), gpu.stream()
    call = programs.prepare(gpu, entries["apply_diffusion_to_vn"], stream=old, called=True)
    gate = gpu.gate(old)
    call()
    call.program.stream = new
    call()
    end = gpu.event(new)
    assert not gpu.is_complete(end)
    gate.open()
    gpu.wait(new)
    assert gpu.is_complete(end)


@programs.needs_kernels
def test_calls_in_turn_on_two_streams_give_what_calls_on_one_give(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    """The program uses the same temporary memory on both."""
    name = "apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence"
    alone = programs.prepare(gpu, entries[name], stream=gpu.stream())
    turning = programs.prepare(gpu, entries[name], stream=gpu.stream())
    streams = [gpu.stream(), gpu.stream()]
    for i in range(20):
        alone()
        turning.program.stream = streams[i % 2]
        turning()
    for found, expected in zip(turning.results(gpu), alone.results(gpu), strict=True):
        np.testing.assert_array_equal(found, expected)
