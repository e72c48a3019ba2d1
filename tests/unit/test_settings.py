"""What environment variables say."""

from __future__ import annotations

import pytest

from gtstub import settings
from gtstub.errors import ConfigError


def test_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (settings.BUILD_TIMEOUT, settings.BUILDER_GRACE):
        monkeypatch.delenv(name, raising=False)
    assert (settings.build_timeout(), settings.builder_grace()) == (60, 5)
    monkeypatch.setenv(settings.BUILD_TIMEOUT, "0.5")
    assert settings.build_timeout() == 0.5
    monkeypatch.setenv(settings.BUILDER_GRACE, "0")
    assert settings.builder_grace() == 0
    monkeypatch.setenv(settings.BUILD_TIMEOUT, "")
    monkeypatch.setenv(settings.BUILDER_GRACE, "")
    assert (settings.build_timeout(), settings.builder_grace()) == (60, 5)


@pytest.mark.parametrize("text", [" ", "0", "-1", "soon", "inf", "nan"])
def test_malformed_time_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(settings.BUILD_TIMEOUT, text)
    with pytest.raises(ConfigError) as caught:
        settings.build_timeout()
    assert str(caught.value) == f"GTSTUB_BUILD_TIMEOUT must be a number of seconds, but is '{text}'."


def test_maximum_size_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.CACHE_MAX_SIZE, raising=False)
    assert settings.cache_max_size() == 5 * 2**30
    monkeypatch.setenv(settings.CACHE_MAX_SIZE, "")
    assert settings.cache_max_size() == 5 * 2**30
    monkeypatch.setenv(settings.CACHE_MAX_SIZE, "2GiB")
    assert settings.cache_max_size() == 2 * 2**30
    monkeypatch.setenv(settings.CACHE_MAX_SIZE, "0")
    assert settings.cache_max_size() == float("inf")
    monkeypatch.setenv(settings.CACHE_MAX_SIZE, "much")
    with pytest.raises(ConfigError, match=r"^GTSTUB_CACHE_MAX_SIZE: 'much' is not a size such as '2GiB': a number, "):
        settings.cache_max_size()


@pytest.mark.parametrize("text", ["", "0"])
def test_nothing_is_waited_for_by_default(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(settings.WAIT, text)
    assert not settings.waits()
    monkeypatch.setenv(settings.WAIT, "1")
    assert settings.waits()


@pytest.mark.parametrize("text", ["", "0"])
def test_sdfgs_are_neither_checked_nor_kept_by_default(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for name, is_on in ((settings.CHECK_SDFG, settings.checks_sdfgs), (settings.KEEP_STAGES, settings.keeps_stages)):
        monkeypatch.setenv(name, text)
        assert not is_on()
        monkeypatch.setenv(name, "1")
        assert is_on()
