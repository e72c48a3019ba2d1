"""What the tests of C hosts share."""

from __future__ import annotations

import pytest

from tests.support import target
from tests.support.c_hosts import BUILDS, Build, works
from tests.support.programs import reason


@pytest.fixture(scope="session")
def builds() -> dict[tuple[str, ...], Build]:
    """Builds by the command of their compiler, as far as they have been asked for."""
    return {}


@pytest.fixture
def build(
    request: pytest.FixtureRequest, builds: dict[tuple[str, ...], Build], tmp_path_factory: pytest.TempPathFactory
) -> Build:
    name: str = request.param
    if name not in BUILDS:
        pytest.skip(target.ONLY_HERE)
    command = BUILDS[name]
    if command not in builds:
        folder = tmp_path_factory.mktemp(name)
        if not works(command, folder):
            pytest.skip(reason(" ".join(command[:2])))
        builds[command] = Build(folder, command)
    return builds[command]
