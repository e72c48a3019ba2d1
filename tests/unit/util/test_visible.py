"""Texts as a page or a terminal can show them."""

from __future__ import annotations

from gtstub.util.visible import visible


def test_marks_of_direction_become_visible() -> None:
    assert visible("a\u202eb\x07 é\n") == "a\\u202eb\\u0007 é\n"
    assert visible("\U000e0001") == "\\U000e0001"
