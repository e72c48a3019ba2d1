"""The example in the README is run as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

README = ROOT / "README.md"


@pytest.mark.skipif(find_spec("gt4py") is None, reason="gt4py is not installed")
def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```\n\nIt prints `(.*?)`", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    script = tmp_path / "example.py"
    script.write_text(found[1], encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{found[2]}\n"), done.stderr
    assert found[2].endswith(": True")
