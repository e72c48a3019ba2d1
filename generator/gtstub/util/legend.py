"""Letters in the place of what a table repeats, and what they mean."""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence

WIDTH = 120
"""The columns of tables with a legend where there is no terminal, unless their words need more."""

FEWEST, SHORTEST = 3, 16
"""What occurs as often, and has as many characters, gets a letter."""


class Legend:
    """Letters that are no words of the given texts, in which they stand for parts or the whole."""

    def __init__(self, *texts: str) -> None:
        self._taken = set(re.findall(r"\w+", " ".join(texts)))
        self._letters: dict[str, str] = {}

    def letter(self, meaning: str, letters: str = string.ascii_uppercase) -> str:
        """The letter of a text, always the same."""
        if meaning not in self._letters:
            names = (f"{letter}{number or ''}" for number in itertools.count() for letter in letters)
            self._letters[meaning] = next(name for name in names if name not in self._taken)
            self._taken.add(self._letters[meaning])
        return self._letters[meaning]

    def repeated(self, texts: Sequence[str]) -> list[str]:
        """The texts, or a letter for each that is repeated."""
        counts = Counter(texts)
        return [self.letter(text) if _deserves_one(text, counts) else text for text in texts]

    def terms(self, texts: Sequence[str]) -> list[str]:
        """The texts with letters for minima and maxima that are repeated, whatever they are in."""
        counts = Counter(term for text in texts for term in _extrema(text))
        named = {term: self.letter(term, string.ascii_lowercase) for term in counts if _deserves_one(term, counts)}
        for term in sorted(named, key=len, reverse=True):  # A long term may contain a short one.
            texts = [text.replace(term, named[term]) for text in texts]
        return list(texts)

    def __str__(self) -> str:
        return "\n".join(f"{letter}: {meaning}" for meaning, letter in self._letters.items())


def _deserves_one(text: str, counts: Counter[str]) -> bool:
    return counts[text] >= FEWEST and len(text) >= SHORTEST


def _extrema(text: str) -> Iterator[str]:
    """The minima and maxima in a text that are in no other one."""
    end = 0
    for found in re.finditer(r"\b(?:min|max)\(", text, re.IGNORECASE):
        if found.start() < end:
            continue
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[found.start() : end]
