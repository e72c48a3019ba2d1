"""The granule 'tiny', exported once for all tests, and what its hosts are made of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.granules import Exported, exported


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return exported(tmp_path_factory.mktemp("granule") / "tiny")


@pytest.fixture
def folder(tiny: Exported, tmp_path: Path) -> Path:
    """A copy of the granule's folder, which a test may change."""
    return Path(shutil.copytree(tiny.folder, tmp_path / "copy"))
