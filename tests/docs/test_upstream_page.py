"""The patches in docs/upstream: they apply to what is installed, and do what the page says."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.programs import needs

gt4py = pytest.importorskip("gt4py")

UPSTREAM = ROOT / "docs" / "upstream"

MODEL = """
import gt4py.next as gtx

I = gtx.Dimension("I")

@gtx.field_operator
def doubled(a: gtx.Field[[I], gtx.float64]) -> gtx.Field[[I], gtx.float64]:
    return a + a

print(gtx.__file__, "foast_stage" in vars(doubled))
doubled.__gt_type__()
print("foast_stage" in vars(doubled))
"""


@needs("git")
@pytest.mark.skipif(importlib.metadata.version("gt4py") != "1.2.1", reason="the patch is for gt4py 1.2.1")
def test_with_the_patch_gt4py_parses_when_it_needs_to(tmp_path: Path) -> None:
    copy = tmp_path / "src" / "gt4py"
    shutil.copytree(Path(gt4py.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    patch = UPSTREAM / "gt4py-lazy-parsing.patch"
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True)
    model = tmp_path / "model.py"
    model.write_text(MODEL)

    def run(**environment: str) -> list[str]:
        command = [sys.executable, str(model)]
        environ = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout.split()

    file = str(copy / "next" / "__init__.py")
    assert run() == [file, "True", "True"]
    assert run(GT4PY_LAZY_FRONTEND="1") == [file, "False", "True"]


def test_the_page_names_each_patch() -> None:
    page = (UPSTREAM / "README.md").read_text(encoding="utf-8")
    assert all(f"({patch.name})" in page for patch in UPSTREAM.glob("*.patch"))
