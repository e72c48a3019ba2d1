"""What differs between two entries, as errors and tables say it."""

from __future__ import annotations

import pytest

from gtstub.entries.cache.key import MISSING, Difference
from gtstub.entries.cache.wording import sentence

FLAGS = " ".join(f"-Wno-{number}" for number in range(20))


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        (1, MISSING, "'a.b' is 1, but was nothing"),
        ("x", 2.5, "'a.b' is \"x\", but was 2.5"),
        (f"{FLAGS} -O3", f"{FLAGS} -O2", "'a.b' is ... o-18 -Wno-19 -O3\", but was ... o-18 -Wno-19 -O2\""),
        ("a" * 64, "b" * 64, "'a.b' has another content than before (digest aaaaaaaaaaaa, was bbbbbbbbbbbb)"),
    ],
)
def test_a_difference_in_a_sentence(ours: object, theirs: object, text: str) -> None:
    assert sentence(Difference("a.b", ours, theirs)) == text
