"""What the tests of DaCe programs share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dace
import pytest


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """DaCe writes what it builds itself into the working directory, and is told to take views of arrays."""
    monkeypatch.chdir(tmp_path)
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        yield
