"""What all tests share: their own modules can be imported, and goldens can be written anew."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-goldens", action="store_true", help="write the files under tests/golden anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(regenerate=bool(request.config.getoption("--regenerate-goldens")))


class Golden:
    """Compares a text with a committed file under tests/golden, or writes the file."""

    def __init__(self, *, regenerate: bool) -> None:
        self._regenerate = regenerate

    def check(self, name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if self._regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"There is no '{name}'; write it with 'pytest --regenerate-goldens'."
        assert text == path.read_text(encoding="utf-8"), f"'{name}' differs; see 'git diff' after --regenerate-goldens."
