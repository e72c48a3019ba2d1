"""The text of a document for readers."""

from __future__ import annotations

import json

from gtstub.util.canonical import WIDTH, readable


def test_what_fits_on_a_line_is_on_one_line() -> None:
    document = {"b": [{}, {"x": 1.5}], "a": "ä" * 100, "c": [], "d": ["y" * 60, "z" * 60], "none": None}
    text = readable(document)
    assert text.splitlines() == [
        "{",
        f' "a": "{"ä" * 100}",',
        ' "b": [{}, {"x": 1.5}],',
        ' "c": [],',
        ' "d": [',
        f'  "{"y" * 60}",',
        f'  "{"z" * 60}"',
        " ],",
        ' "none": null',
        "}",
    ]
    assert json.loads(text) == document


def test_a_line_is_as_long_as_it_may_be() -> None:
    def longest(length: int) -> int:
        return max(map(len, readable({"values": ["x" * length, "y"], "z": 0}).splitlines()))

    room = WIDTH - len(' "values": ["", "y"],')
    assert (longest(room), longest(room + 1)) == (WIDTH, room + 1 + len('  "",'))
