"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Sequence


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name, worded as in Python. It lists all known names if none is close."""
    from difflib import get_close_matches  # imported here because it is needed after a mistake only

    by_lower_case = {each.lower(): each for each in known}
    if close := get_close_matches(name.lower(), by_lower_case, 1):
        return f" Did you mean: '{by_lower_case[close[0]]}'?"
    return f" Known: {', '.join(f"'{each}'" for each in known)}."
