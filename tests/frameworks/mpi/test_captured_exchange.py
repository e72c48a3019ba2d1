"""A halo exchange by MPI in a captured method: each rank refuses it, and the step of its parts does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.programs import needs
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub

RANKS, SIZE = 2, 6


@needs("mpirun")
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_an_exchange_between_ranks(tmp_path: Path, toolchain: Toolchain) -> None:
    build_library(tmp_path)
    stub = build_stub(SDFG, PROGRAM, tmp_path, toolchain)
    stub.rename(tmp_path / "libscale_stub.so")
    program = Path(__file__).with_name("exchange_program.py")
    environment = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMP_NUM_THREADS"), "1")
    run = subprocess.run(
        [*("mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(RANKS)),
         sys.executable, str(program), str(tmp_path), str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for rank in range(RANKS):
        said = json.loads((tmp_path / f"{rank}.json").read_bytes())
        text = "argument 'x' of program 'scale' (position 2) differs at 2 of 6 elements, first at (0,): "
        assert text in said["refused"]
        refused, different = said["on one rank"]
        assert ("was 0.0 in the first call, and 1.0 in the second one" in refused) == (rank == 0)
        assert ("differs at 1 of 4 elements, first at (1,): 7.0 after the method" in different) == (rank == 0)
        own, other = (10.0 * each + 1.0 for each in (rank, 1 - rank))
        points = [other + SIZE - 2, *(own + index for index in range(1, SIZE - 1)), other + 1]
        assert said["c"] == [6.0 * each for each in points]
