"""The gate on the cost of a call: instructions, because they do not depend on the noise of a machine as times do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtstub.planner import make_plan
from gtstub.signature.documents import program_from_json, sdfg_from_json
from tests.benchmarks import instructions
from tests.benchmarks.entry import build_entry
from tests.benchmarks.peers import build_caller

SIGNATURES = Path(__file__).parents[1] / "golden" / "signatures"
LIMIT = 1000


@pytest.mark.valgrind
@pytest.mark.skipif(instructions.find_valgrind() is None, reason="valgrind is not installed (apt-get install valgrind)")
@pytest.mark.parametrize("name", ["apply_diffusion_to_vn", "apply_diffusion_to_vn_as_in_icon4py"])
def test_a_call_with_the_same_fields_costs_at_most_1000_instructions(name: str, tmp_path: Path) -> None:
    program = program_from_json((SIGNATURES / f"{name}.program.json").read_text(), name)
    sdfg = sdfg_from_json((SIGNATURES / f"{name}.sdfg.json").read_text(), name)
    plan = make_plan(sdfg, program)
    artifact = build_entry(sdfg, program, tmp_path)
    count = instructions.count_per_call(plan, artifact.path, build_caller(tmp_path))
    print(f"{count:.0f} instructions for {len(plan.slots)} slots")
    assert len(plan.slots) < count <= LIMIT  # less than one for a slot: nothing was called
