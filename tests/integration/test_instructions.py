"""The gates on the cost of a call: instructions, because they do not depend on the noise of a machine as times do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gtstub.planner import make_plan
from gtstub.signature.documents import program_from_json, sdfg_from_json
from tests.benchmarks import instructions
from tests.benchmarks.callables import build_variants
from tests.benchmarks.entry import build_entry
from tests.benchmarks.peers import build_caller

pytestmark = [
    pytest.mark.valgrind,
    pytest.mark.xdist_group("instructions"),  # so that what they measure is built once
    pytest.mark.skipif(
        instructions.find_valgrind() is None, reason="valgrind is not installed (apt-get install valgrind)"
    ),
]

SIGNATURES = Path(__file__).parents[1] / "golden" / "signatures"
NAME = "apply_diffusion_to_vn"
PROGRAM = program_from_json((SIGNATURES / f"{NAME}.program.json").read_text(), NAME)
SDFG = sdfg_from_json((SIGNATURES / f"{NAME}.sdfg.json").read_text(), NAME)
PLAN = make_plan(SDFG, PROGRAM)
STATIC: Mapping[str, bool | int | float] = {
    "nudgezone_diff": 0.5,
    "start_2nd_nudge_line_idx_e": 5,
    "limited_area": True,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instructions")
    build_entry(SDFG, PROGRAM, folder)
    build_caller(folder)
    return folder


def count(folder: Path, way: instructions.Way, *entries: Path) -> float:
    counted = instructions.count_per_call(PLAN, folder / "caller.so", *(entries or (folder / "entry",)), way=way)
    print(f"{counted:.0f} instructions, {way}")
    assert counted > len(PLAN.slots)  # less than one for a slot: nothing was called
    return counted


@pytest.mark.parametrize(("way", "limit"), [("program", 1000), ("bound", 1150), ("keywords", 1400)])
def test_a_call_with_the_same_fields(folder: Path, way: instructions.Way, limit: float) -> None:
    assert count(folder, way) <= limit


def test_eight_variants_cost_no_more_than_one(folder: Path) -> None:
    entries = [entry.path for entry in build_variants(SDFG, PROGRAM, STATIC, folder)]
    assert len(entries) == 8
    assert count(folder, "variants", *entries) <= count(folder, "variants", entries[0]) + 20
