"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Sequence

SHORTEST_PART, MOST_WHOLE = 3, 3
"""The fewest characters of a part of a name, and the most names with this part that are suggested."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """
    The end of a message about an unknown name, worded as in Python: it suggests the names that it is a part of, or else
    the closest one, or else lists all known names.
    """
    from difflib import get_close_matches  # imported here because it is needed after a mistake only

    by_lower_case = {each.lower(): each for each in known}
    whole = [f"'{each}'" for lower, each in by_lower_case.items() if name.lower() in lower]
    if len(name) >= SHORTEST_PART and 0 < len(whole) <= MOST_WHOLE:
        return f" Did you mean: {' or '.join(whole)}?"
    if close := get_close_matches(name.lower(), by_lower_case, 1):
        return f" Did you mean: '{by_lower_case[close[0]]}'?"
    return f" Known: {', '.join(f"'{each}'" for each in known)}."
