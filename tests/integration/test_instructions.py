"""The gates on the cost of a call: instructions, because they do not depend on the noise of a machine as times do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gtstub.frameworks.gt4py import make_backend
from gtstub.planner import make_plan
from gtstub.signature.documents import program_from_json, sdfg_from_json
from integration.programs import CASES, Case, lower
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
    arguments = instructions.example_arguments(PLAN)
    counted = instructions.count_per_call(arguments, folder / "caller.so", *(entries or (folder / "entry",)), way=way)
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


def described(value: Any) -> Any:
    return {"shape": value.ndarray.shape, "dtype": str(value.ndarray.dtype)} if hasattr(value, "ndarray") else value


@pytest.mark.parametrize("case", [CASES["apply_diffusion_to_vn_as_in_icon4py"]], ids=lambda case: case.name)
def test_a_call_costs_little_more_than_its_sdfg(folder: Path, case: Case, tmp_path: Path) -> None:
    """
    As icon4py compiles it, eight scalars static, on its smallest grid. What the SDFG itself costs is the difference to
    a library that does nothing.
    """
    lowering = lower(case)
    real = make_backend(gpu=False, **case.options).executor(lowering.compilable).path
    sdfg = sdfg_from_json((real / "sdfg.json").read_text(), "sdfg.json")
    program = program_from_json((real / "program.json").read_text(), "program.json")
    idle = build_entry(sdfg, program, tmp_path).path
    names = [parameter.name for parameter in program.parameters]
    arguments = {
        "parameters": {
            name: described(value.item() if hasattr(value, "item") else value)
            for name, value in zip(names, lowering.args, strict=True)
        },
        "offset_provider": {
            name: described(table) for name, table in lowering.offset_provider.items() if hasattr(table, "ndarray")
        },
    }
    caller = folder / "caller.so"
    whole, call = (
        instructions.count_per_call(arguments, caller, entry, way="bound", calls=400) for entry in (real, idle)
    )
    print(f"{whole:.0f} instructions with the SDFG, {call:.0f} without")
    assert whole / (whole - call) <= 1.05
    assert call <= 1000
