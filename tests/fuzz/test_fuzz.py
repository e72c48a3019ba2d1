"""A short run of 'make fuzz', and that it finds what it should find."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.checkout import ROOT


def fuzz(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{before}\nfrom tests.fuzz.run import main\nmain()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.sanitizer
def test_short_run_finds_nothing() -> None:
    done = fuzz("--rounds", "4000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "seed 1: 240 archives, 400 entries, 960 claims, 1000 recordings, 1400 signatures;" in done.stdout


FAULTS = {
    "archives": "from gtstub.entries.cache import bundle; bundle.is_plain = bundle.is_key = bool",
    "entries": "from gtstub.entries.cache import manifest; manifest._seconds = lambda built, name: built.get(name)",
    "claims": "from gtstub.entries.cache import claims; claims.read_regular = lambda file, most: file.read_bytes()",
    "recordings": "import re; from gtstub.tools.recorded import archive; archive._NAME = re.compile('.*')",
    "signatures": "from gtstub.stub.plan.flattening import Flattening; Flattening._check_rank = lambda *_: None",
}
"""What takes one check of each target away."""


@pytest.mark.parametrize("target", FAULTS)
def test_missing_check_is_found(target: str) -> None:
    done = fuzz("--target", target, "--rounds", "4000", before=FAULTS[target])
    assert done.returncode == 1
    assert f" of '{target}', seed 1" in done.stderr
