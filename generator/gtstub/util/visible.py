"""Texts of files, such as names in an SDFG, as a page or a terminal can show them."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of control characters, marks of direction, surrogates and the like."""


def visible(text: str) -> str:
    """
    A text with its control characters and marks of direction, which would move or hide what is around them, as escape
    sequences. Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character == "\n" or unicodedata.category(character) not in _HIDDEN else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
