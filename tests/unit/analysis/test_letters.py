"""Letters for conditions."""

from __future__ import annotations

from gtstub.analysis.letters import letters


def test_texts_that_occur_again_get_letters_in_their_order() -> None:
    assert letters(["m < n", "0 < n", "flag", "0 < n", "m < n"]) == {"m < n": "A", "0 < n": "B"}
    assert letters(["flag"]) == letters([]) == {}


def test_letters_do_not_end() -> None:
    found = letters([str(number) for number in range(705)] * 2)
    assert [found[str(number)] for number in (0, 25, 26, 27, 702, 704)] == ["A", "Z", "AA", "AB", "AAA", "AAC"]
    assert len(set(found.values())) == 705
