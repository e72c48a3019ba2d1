"""All tests of one worker share one workshop."""

from __future__ import annotations

import pytest

from tests.faults.workshop import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))
