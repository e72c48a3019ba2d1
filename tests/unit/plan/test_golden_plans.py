"""Plans of real programs, whole: a change of the planner shows in the diff of these files."""

from __future__ import annotations

import pytest

from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.planner import make_plan
from gtstub.util.canonical import readable
from tests.support.goldens import FOLDER, REAL, Golden, signatures_of


def test_there_are_real_programs() -> None:
    assert "apply_diffusion_to_vn" in REAL


@pytest.mark.parametrize("name", REAL)
def test_golden_plan(name: str, golden: Golden) -> None:
    plan = make_plan(*signatures_of(name))
    golden.check(f"plans/{name}.json", readable(plan_to_json(plan)))


def test_every_golden_plan_is_of_a_program() -> None:
    assert sorted(path.stem for path in (FOLDER / "plans").iterdir()) == REAL
