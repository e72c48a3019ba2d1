"""Durations and sizes, as users write them."""

from __future__ import annotations

import pytest

from gtstub.util.quantity import duration, size

DAY = 86400


def test_times_and_sizes() -> None:
    assert [duration(text) for text in ("90s", "2m", "12h", "30d", "1.5 w")] == [90, 120, 43200, 30 * DAY, 10.5 * DAY]
    assert [size(text) for text in ("100", "1k", "1kB", "2 KiB", "500MB", "1.5GiB", "1T")] == [
        *(100, 1024, 1000, 2048, 500_000_000),
        *(1.5 * 2**30, 2**40),
    ]
    for wrong in ("", "d", "30", "3x", "3M", "-1d", "nan d"):
        with pytest.raises(ValueError) as caught:
            duration(wrong)
        assert str(caught.value) == f"'{wrong}' is not a duration such as '30d': a number, and one of s, m, h, d, w."
    for wrong in ("", "GiB", "3x", "-1", "inf"):
        with pytest.raises(ValueError) as caught:
            size(wrong)
        assert str(caught.value).startswith(f"'{wrong}' is not a size such as '2GiB': ")
