"""Plans of real programs, whole: a change of the planner shows in the diff of these files."""

from __future__ import annotations

import json

import pytest

from goldens import FOLDER, Golden
from gtstub.planner import make_plan
from gtstub.report import plan_to_json
from gtstub.signature.documents import program_from_json, sdfg_from_json

NAMES = sorted(path.name.removesuffix(".sdfg.json") for path in (FOLDER / "signatures").glob("*.sdfg.json"))


def test_there_are_real_programs() -> None:
    assert "apply_diffusion_to_vn" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_golden_plan(name: str, golden: Golden) -> None:
    program, sdfg = (FOLDER / "signatures" / f"{name}.{kind}.json" for kind in ("program", "sdfg"))
    plan = make_plan(
        sdfg_from_json(sdfg.read_text(encoding="utf-8"), sdfg.name),
        program_from_json(program.read_text(encoding="utf-8"), program.name),
    )
    golden.check(f"plans/{name}.json", json.dumps(plan_to_json(plan), indent=1, ensure_ascii=False) + "\n")


def test_every_golden_plan_is_of_a_program() -> None:
    assert sorted(path.stem for path in (FOLDER / "plans").iterdir()) == NAMES
