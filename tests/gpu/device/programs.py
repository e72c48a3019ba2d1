"""Programs of icon4py on a GPU, with their arguments."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gtstub.entries.cache.entry import Entry
from gtstub.stub.signature.documents import program_from_json
from gtstub.stub.signature.model import ProgramSignature
from tests.gpu.device import arrays
from tests.support import gpu_programs
from tests.support.checkout import ROOT

FILE = ROOT / "examples" / "icon4py" / "programs.toml"
ALL = re.findall(r"^source = .*:(\w+)\"$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
NAMES = ALL if "GTSTUB_GPU_ALL" in os.environ else list(gpu_programs.PROGRAMS)
"""The programs that the tests build."""

needs_gpu = [
    pytest.mark.device,
    pytest.mark.xdist_group("device"),
    pytest.mark.skipif(
        bool(arrays.missing()), reason=f"{arrays.missing()} 'make gpu' runs this on a machine with one."
    ),
]
needs_kernels = pytest.mark.skipif("GTSTUB_GPU_STAND_IN" in os.environ, reason="The stand-in runs no kernels.")


@functools.cache
def build(tag: str, names: Collection[str] = gpu_programs.PROGRAMS) -> dict[str, Entry]:
    """Programs for this machine's GPU or CPU (`tag`), by program and variant; built once in a cache."""
    cache = Path(os.environ["GTSTUB_CACHE_DIR"])
    cache.mkdir(parents=True, exist_ok=True)
    return gpu_programs.build("", cache, names, tag, int(os.environ.get("JOBS", "2")))


@dataclasses.dataclass(frozen=True)
class Call:
    """A program and arguments on the GPU."""

    program: Any
    arguments: Mapping[str, Any]

    def __call__(self) -> None:
        self.program(**self.arguments)

    def results(self, gpu: arrays.Gpu) -> list[NDArray[Any]]:
        """Copies of all fields. Waits for the program's stream."""
        gpu.wait(self.program.stream)
        return [gpu.values(array) for array in gpu_programs.fields_of(self.arguments)]


def signature(entry: Entry) -> ProgramSignature:
    return program_from_json((entry.path / "program.json").read_text(encoding="utf-8"), "program.json")


def prepare(gpu: arrays.Gpu, entry: Entry, *, stream: Any = "current", called: bool = False, seed: int = 1) -> Call:
    """A program with random arguments, the same for the same seed; with `called`, its first call is over."""
    program = entry.load()
    if stream != "current":
        program.stream = stream
    if called:
        warming = Call(program, gpu_programs.arguments(signature(entry), gpu.array, np.random.default_rng(seed)))
        warming()
        warming()
        gpu.wait(program.stream)
    return Call(program, gpu_programs.arguments(signature(entry), gpu.array, np.random.default_rng(seed)))


def check_returns_before_its_work(gpu: arrays.Gpu, stream: Any, work: Callable[[], object]) -> None:
    """
    Calls `work` while `stream` is held: it must return, put its work on that stream, and leave the default stream
    alone. Its arrays must be known to the programs, because a call with a new array waits for the stream of the array.
    """
    gate = gpu.gate(stream)
    work()
    end = gpu.event(stream)
    assert gpu.is_idle(None)
    assert not gpu.is_complete(end)
    gate.open()
    gpu.wait(stream)
    assert gpu.is_complete(end)
