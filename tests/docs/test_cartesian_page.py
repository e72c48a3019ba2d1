"""docs/cartesian.md: its examples print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

PAGE = (ROOT / "docs" / "cartesian.md").read_text(encoding="utf-8")

REFUSED = """
try:
    diffuse(gtx.as_field([I, J, K], np.zeros((nx, ny, nz))), new, 0.1, **sizes, offset_provider={})
except ValueError as error:
    print(f"ValueError: {error}")
"""


@pytest.mark.skipif(find_spec("gt4py") is None, reason="gt4py is not installed")
def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    program, step, compiled = (text for language, text in found if language == "python")
    of_program, of_refusal, of_step = (text for language, text in found if not language)
    script = tmp_path / "model.py"
    script.write_text(program + REFUSED + step + compiled, encoding="utf-8")
    done = subprocess.run([sys.executable, "-O", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, of_program + of_refusal + of_step), done.stderr
