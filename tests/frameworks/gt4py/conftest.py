"""What the tests of gt4py share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.warm_python import WarmPython


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    server = WarmPython()
    yield server
    server.close()
