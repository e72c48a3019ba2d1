"""The stand-in for NDSL, which is no package that could be installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import dace
import pytest

from tests.support.checkout import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support" / "ndsl_stand_in"))


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """NDSL's cache, whose folder NDSL tells DaCe, and gtstub's."""
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "gtstub"))
    with dace.config.temporary_config():
        dace.Config.set("default_build_folder", value=str(tmp_path / "dacecache"))
        yield tmp_path
