"""examples/edge_mean, built and run as its README says."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.checkout import ROOT
from tests.support.pages import blocks, run_commands
from tests.support.programs import needs

EXAMPLE = ROOT / "examples" / "edge_mean"


@needs("gfortran")
def test_commands_of_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "edge_mean"
    shutil.copytree(EXAMPLE, folder)
    (commands,) = blocks((EXAMPLE / "README.md").read_text(encoding="utf-8"), "sh")
    assert run_commands(commands, folder).splitlines()[-1] == "   1.5   2.5   3.5  15.0  25.0  35.0"
