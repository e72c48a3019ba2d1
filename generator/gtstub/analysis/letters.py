"""Letters for conditions that tables and pages would repeat: the text stands once, in a legend."""

from __future__ import annotations

import collections
import itertools
import string
from collections.abc import Iterable, Iterator


def letters(texts: Iterable[str]) -> dict[str, str]:
    """
    The texts that occur more than once, in the order in which they come first, each with a letter: A to Z, then AA, AB.

    >>> letters(["0 < n", "flag", "0 < n", "m < n", "flag"])
    {'0 < n': 'A', 'flag': 'B'}
    """
    occurrences = collections.Counter(texts)  # keeps the order
    repeated = (text for text, number in occurrences.items() if number > 1)
    return dict(zip(repeated, _letters(), strict=False))


def _letters() -> Iterator[str]:
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_uppercase, repeat=length))
