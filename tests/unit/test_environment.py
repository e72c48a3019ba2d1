"""Times from the environment."""

from __future__ import annotations

import pytest

from gtstub.environment import seconds
from gtstub.errors import CacheError, GtstubError, RanksError

VARIABLE = "GTSTUB_TEST_TIME"


def test_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert seconds(VARIABLE, 60, CacheError) == 60
    monkeypatch.setenv(VARIABLE, "0.5")
    assert seconds(VARIABLE, 60, CacheError) == 0.5
    monkeypatch.setenv(VARIABLE, "0")
    assert seconds(VARIABLE, 60, CacheError, or_none=True) == 0


@pytest.mark.parametrize("error", [CacheError, RanksError])
@pytest.mark.parametrize("text", ["", "0", "-1", "soon", "inf", "nan"])
def test_time_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str, error: type[GtstubError]) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(error) as caught:
        seconds(VARIABLE, 60, error)
    assert str(caught.value) == f"{VARIABLE} must be a number of seconds, but is '{text}'."
