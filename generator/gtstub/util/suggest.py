"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Sequence

MISTYPED = 0.85
"""The similarity from which on a name is taken for another one that was mistyped."""

SHORTEST_PART, MOST_WHOLE = 3, 3
"""The fewest characters of a part of a name, and the most names with this part that are suggested."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """
    The end of a message about an unknown name, worded as in Python. It suggests the name that was mistyped, or those
    that `name` is a part of, or the closest one. It lists all known names if none is close.
    """
    from difflib import get_close_matches  # imported here because it is needed after a mistake only

    by_lower_case = {each.lower(): each for each in known}
    lower = name.lower()
    whole = [each for each in by_lower_case if lower in each] if len(name) >= SHORTEST_PART else []
    close = get_close_matches(lower, by_lower_case, 1, MISTYPED)
    if not close and len(whole) <= MOST_WHOLE:
        close = whole
    if found := close or get_close_matches(lower, by_lower_case, 1):
        return f" Did you mean: {' or '.join(f"'{by_lower_case[each]}'" for each in found)}?"
    return f" Known: {', '.join(f"'{each}'" for each in known)}."
