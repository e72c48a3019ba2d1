"""What 'gtstub memory', 'check' and 'report' say about programs for a GPU."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import COMPILED_SDFG, Entry
from gtstub.stub.sdfg.read import read
from gtstub.stub.signature.documents import program_in, sdfg_in
from gtstub.tools.memory.memory import memory
from gtstub.tools.memory.sizes import known_dimensions, symbol_sizes
from tests.gpu.device import programs
from tests.gpu.device.stand_in import StandIn
from tests.support import gpu_programs
from tests.support.cli import run

pytestmark = programs.needs_gpu

needs_stand_in = pytest.mark.skipif(
    "GTSTUB_GPU_STAND_IN" not in os.environ, reason="Only the stand-in for the CUDA runtime lists allocations."
)


@needs_stand_in
@pytest.mark.parametrize("name", gpu_programs.PROGRAMS)
def test_a_call_allocates_what_the_analysis_says(gpu: StandIn, entries: dict[str, Entry], name: str) -> None:
    call = programs.prepare(gpu, entries[name], called=True)
    gpu.log()
    call()
    allocated = [int(size) for size in re.findall(r"^cudaMalloc\w* bytes=(\d+)", "\n".join(gpu.log()), re.MULTILINE)]

    path = entries[name].path
    program, sdfg = program_in(path / "program.json"), sdfg_in(path / "sdfg.json")
    dimensions = {dim: gpu_programs.SIZES[dim] for dim in known_dimensions(program)}
    scalars = {each.name for each in sdfg.arguments}
    values = {name: value for name, value in gpu_programs.VALUES.items() if name in scalars}
    found = memory(read(path / COMPILED_SDFG), symbol_sizes(program, sdfg, dimensions, values))
    expected = [each.bytes for each in found.transients if each.allocated == "call"]
    assert sorted(allocated) == sorted(expected)
    assert {each.storage for each in found.transients if each.allocated == "call"} <= {"GPU_Global"}


@pytest.mark.parametrize("name", gpu_programs.PROGRAMS)
def test_gt4py_keeps_its_rules_and_a_page_is_written(entries: dict[str, Entry], tmp_path: Path, name: str) -> None:
    path = str(entries[name].path)
    result = run("check", path, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    page = tmp_path / "page.html"
    assert run("report", path, "-o", str(page)).exit_code == 0
    assert name in page.read_text(encoding="utf-8")
