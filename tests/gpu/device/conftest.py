"""Programs of icon4py that nvcc has built for the GPU of this machine ('make gpu')."""

from __future__ import annotations

import pytest

from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs


@pytest.fixture(scope="session")
def gpu() -> arrays.Gpu:
    return arrays.find()


@pytest.fixture(scope="session")
def entries(gpu: arrays.Gpu) -> dict[str, Entry]:
    """The programs of gpu_programs.PROGRAMS, for this machine's GPU. The stand-in must be loaded before them."""
    return programs.build("GPU")
