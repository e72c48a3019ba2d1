"""A graph of a step computes what its calls compute, and what cannot be captured is refused without harm."""

from __future__ import annotations

import numpy as np
import pytest

import gtstub
from gtstub.cache.entry import Entry
from tests.gpu.device import arrays, programs
from tests.support.graphs import Captured

pytestmark = programs.needs_gpu

STEPS = 5


@programs.needs_kernels
def test_a_graph_computes_what_single_calls_compute(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    stream = gpu.stream()
    with gtstub.stream(stream):
        single, captured = ([programs.prepare(gpu, entry, called=True) for entry in entries.values()] for _ in range(2))
        for _ in range(STEPS):
            for call in single:
                call()
        with Captured() as graph:
            for call in captured:
                call()
        before = [call.results(gpu) for call in captured]
        for _ in range(STEPS):
            graph()
        gpu.wait(stream)
        after = [call.results(gpu) for call in captured]
        expected = [call.results(gpu) for call in single]
    for name, found, wanted in zip(entries, after, expected, strict=True):
        for i, pair in enumerate(zip(found, wanted, strict=True)):
            np.testing.assert_array_equal(*pair, err_msg=f"{name}, field {i}")
    assert any(
        not np.array_equal(*pair, equal_nan=True)
        for fields in zip(before, after, strict=True)
        for pair in zip(*fields, strict=True)
    )


def test_a_graph_is_launched_without_waiting(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    stream = gpu.stream()
    call = programs.prepare(gpu, entries["apply_diffusion_to_vn"], called=True)
    with Captured() as graph:
        call()
    graph(stream)
    gpu.wait(stream)
    gpu.wait()
    programs.check_returns_before_its_work(gpu, stream, lambda: graph(stream))


def test_a_first_call_is_refused_in_a_graph_and_works_afterwards(gpu: arrays.Gpu, entries: dict[str, Entry]) -> None:
    called = programs.prepare(gpu, entries["scale_k"], called=True)
    new = programs.prepare(gpu, entries["apply_diffusion_to_vn"])

    def step() -> None:
        called()
        new()

    with pytest.raises(RuntimeError) as caught, Captured():
        step()
    assert str(caught.value) == (
        "Program 'apply_diffusion_to_vn' allocates memory in this call, so its stream must not be captured: call it"
        " once before, with the same sizes."
    )
    new()
    called()
    gpu.wait()
