"""The example of a DaCe program that exchanges halos by a callback: ranks compute what one process computes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

MODEL = ROOT / "examples" / "shallow_water" / "model.py"

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None or find_spec("mpi4py") is None, reason="This needs 'mpirun' and mpi4py."
)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_compute_what_one_process_computes(
    ranks: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.getbasetemp() / "shallow_water"
    one, of_one = run(1, cache, tmp_path / "one.png")
    many, of_many = run(ranks, cache, tmp_path / "many.png")
    assert (one, many) == (1, ranks)
    assert of_many == of_one
    lowest, highest, before, after = of_one
    assert -0.5 < lowest < 0 < highest < 0.9
    assert after == pytest.approx(before, abs=1e-8)
    assert (tmp_path / "many.png").read_bytes().startswith(b"\x89PNG")


def run(ranks: int, cache: Path, picture: Path) -> tuple[int, list[float]]:
    """Runs the model; returns the number of ranks and the numbers that it prints."""
    launcher = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks)]
    done = subprocess.run(
        [*launcher, sys.executable, MODEL, "--size=20", "--steps=12", f"--output={picture}"],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "GTSTUB_CACHE_DIR": str(cache), "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(
        r"12 steps on (\d+) ranks\nheights from (\S+) to (\S+) m\nvolume before and after: (\S+) and (\S+)", done.stdout
    )
    assert found is not None, done.stdout
    return int(found[1]), [float(number) for number in found.groups()[1:]]
