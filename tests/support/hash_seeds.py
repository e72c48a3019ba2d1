"""Scripts in processes that order sets of texts differently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def printed_with_seeds(script: Path, *seeds: str) -> set[str]:
    """What the script prints in a new process with each of these values of PYTHONHASHSEED."""
    return {
        subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in seeds
    }
