"""What the tests of C hosts share."""

from __future__ import annotations

import pytest

from tests.support.c_hosts import BUILDS, Build, works
from tests.support.programs import reason


@pytest.fixture(scope="session")
def builds() -> dict[str, Build]:
    """Builds by name, as far as they have been asked for."""
    return {}


@pytest.fixture
def build(request: pytest.FixtureRequest, builds: dict[str, Build], tmp_path_factory: pytest.TempPathFactory) -> Build:
    name: str = request.param
    if name not in builds:
        folder = tmp_path_factory.mktemp(name)
        if not works(BUILDS[name], folder):
            pytest.skip(reason(" ".join(BUILDS[name][:2])))
        builds[name] = Build(folder, BUILDS[name])
    return builds[name]
