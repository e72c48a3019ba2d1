"""The stand-in for NDSL, which is no package that could be installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import dace
import pytest

from tests.support.checkout import ROOT
from tests.support.own_cache import copy_answers, use_own_cache

sys.path.insert(0, str(ROOT / "tests" / "support" / "ndsl_stand_in"))


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """NDSL's cache, whose folder NDSL tells DaCe, and gtstub's."""
    shared = use_own_cache(tmp_path / "gtstub", monkeypatch)
    with dace.config.temporary_config():
        dace.Config.set("default_build_folder", value=str(tmp_path / "dacecache"))
        yield tmp_path
    copy_answers(tmp_path / "gtstub", shared)
