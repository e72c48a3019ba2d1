"""A cache for one test alone. What CMake answered about the toolchain is shared, because asking takes seconds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def use_own_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes `folder`, which may exist, the cache of a test. Returns the cache that the tests share."""
    shared = Path(os.environ["GTSTUB_CACHE_DIR"])
    copy_answers(shared, folder)
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(folder))
    return shared


def copy_answers(source: Path, target: Path) -> None:
    """Copies the answers that `target` lacks, each whole at once, because other workers do the same."""
    target.mkdir(parents=True, exist_ok=True)
    for answer in source.glob("toolchain-*.json"):
        if not (target / answer.name).exists():
            part = target / f".{answer.name}.{os.getpid()}"
            shutil.copy(answer, part)
            part.replace(target / answer.name)
