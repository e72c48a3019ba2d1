"""A zero-dimensional field on the GPU is read after the work of the program's stream that writes it."""

from __future__ import annotations

import subprocess
import sys

from tests.gpu.device import programs
from tests.support.checkout import ROOT

pytestmark = programs.needs_gpu


@programs.needs_kernels
def test_a_field_is_read_after_what_the_stream_has_written() -> None:
    command = [sys.executable, "-m", "tests.gpu.device.zero_dimensional"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "> read" in done.stdout.splitlines()
