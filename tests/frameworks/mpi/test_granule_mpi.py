"""examples/granule_mpi, built and run as its README says: two ranks of different size compute what one rank does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.checkout import ROOT
from tests.support.pages import blocks, run_commands
from tests.support.programs import needs

EXAMPLE = ROOT / "examples" / "granule_mpi"
CELLS, LEVELS, STEPS = 51, 4, 100

REFUSED = """
from model import MPI, Path, Ring, export, use_communicator
ranks = MPI.COMM_WORLD
use_communicator(ranks)
try:
    export(Ring([30, 21][ranks.rank], ranks), Path(f"build/again/rank_{ranks.rank}"))
except Exception as error:
    print(error)
"""
"""Exports the granule again. On rank 1 its folder is one without a granule."""


@needs("mpirun")
@needs("gfortran")
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "granule_mpi"
    shutil.copytree(EXAMPLE, folder)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    # More ranks than cores: MPI's own waiting would spin.
    for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(f"OMPI_{name}", "1")
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))

    (commands,) = blocks((EXAMPLE / "README.md").read_text(encoding="utf-8"), "sh")
    said = run_commands(commands, folder)
    assert "100 steps on 1 ranks" in said
    assert "100 steps on 2 ranks" in said
    found = np.fromfile(folder / "build" / "two.bin").reshape(LEVELS, CELLS).T
    assert found.tobytes() == np.fromfile(folder / "build" / "one.bin").reshape(LEVELS, CELLS).T.tobytes()
    np.testing.assert_allclose(found, ring_in_numpy(), rtol=1e-12)

    first, second = (description(folder / "build" / "two" / f"rank_{rank}") for rank in (0, 1))
    assert [each["arrays"][0]["shape"] for each in (first, second)] == [[32, LEVELS], [23, LEVELS]]
    assert first["programs"] == second["programs"]

    refused = folder / "build" / "again" / "rank_1"
    refused.mkdir(parents=True)
    (folder / "again.py").write_text(REFUSED, encoding="utf-8")
    run = subprocess.run(
        ["mpirun", "-n", "2", sys.executable, "again.py"],
        cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert f"'{refused}' exists: it has no granule, which could be replaced." in run.stdout, run.stderr
    assert (refused.with_name("rank_0") / "granule.json").is_file()  # Rank 0 did not wait for an exchange of rank 1.


def description(granule: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((granule / "granule.json").read_bytes())
    return found


def ring_in_numpy() -> npt.NDArray[np.float64]:
    """What the host computes, without ranks."""
    cell, level = np.meshgrid(np.arange(CELLS), 1 + np.arange(LEVELS), indexing="ij")
    x = ((7 * cell + 3 * level) % 11).astype(np.float64)

    def laplacian(of: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.roll(of, 1, axis=0) + np.roll(of, -1, axis=0) - 2.0 * of

    for _ in range(STEPS):
        x = x - 0.05 * laplacian(laplacian(x))
    return x
