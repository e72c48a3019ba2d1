"""What the tests of gt4py share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gtstub.frameworks.gt4py import backend as plugin
from tests.support.warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    server = WarmPython()
    yield server
    server.close()


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> plugin.StubBackend:
    """A backend with an empty cache."""
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    made = plugin.make_backend(gpu=False, auto_optimize=False)
    assert made is not None
    return made
