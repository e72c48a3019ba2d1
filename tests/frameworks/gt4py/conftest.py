"""What the tests of gt4py share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gtstub.frameworks.gt4py import backend as plugin
from tests.support.own_cache import use_own_cache
from tests.support.warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    server = WarmPython()
    yield server
    server.close()


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> plugin.StubBackend:
    """A backend with an empty cache."""
    use_own_cache(tmp_path / "cache", monkeypatch)
    made = plugin.make_backend(gpu=False, auto_optimize=False)
    assert made is not None
    return made
