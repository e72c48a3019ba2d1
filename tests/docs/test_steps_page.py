"""docs/steps.md and docs/granules.md: the class with a halo exchange becomes a step and a granule, as the pages say."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.pages import blocks

STEPS, GRANULES = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("steps.md", "granules.md"))

RESULT = "step()\nprint(model.result.ndarray)\n"


@pytest.mark.skipif(find_spec("gt4py") is None, reason="gt4py is not installed")
def test_the_example_of_a_halo_exchange(tmp_path: Path) -> None:
    section = STEPS.partition("## Halo exchanges\n")[2].partition("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    example, of_calls = (text for language, text in found if language)
    (printed,) = (text for language, text in found if not language)
    granule = next(each for each in blocks(GRANULES, "python") if "curvature_granule" in each)
    expected = "model.run()\nprint(model.result.ndarray)\n"
    script = tmp_path / "model.py"
    script.write_text(example + expected + of_calls + RESULT + granule, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    result = printed.splitlines()[-1]
    assert (done.returncode, done.stdout.split()) == (0, [*printed.split(), *2 * result.split()]), done.stderr
    assert (tmp_path / "curvature_granule" / "curvature_granule.f90").is_file()
    assert "CaptureWarning: Step 'Curvature.run' may lack something: position 2 ('slope') reads 2 of 10" in done.stderr
