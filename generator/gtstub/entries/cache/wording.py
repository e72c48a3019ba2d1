"""Values of ingredients as texts for people, of a length that fits into a line."""

from __future__ import annotations

import json
import re
from typing import Any

from gtstub.entries.cache.key import MISSING, Difference

WIDEST = 60
"""The most characters of a value. The JSON documents of the command line have the whole value."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def whole(value: Any) -> str:
    if value is MISSING:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)  # Escape sequences would reach the terminal.


def cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 4]} ..."


def sides(difference: Difference) -> tuple[str, str]:
    """Both values. If they are long and begin alike, the texts start shortly before the first difference."""
    return _cropped(whole(difference.ours), whole(difference.theirs))


def sentence(difference: Difference) -> str:
    """What differs, as a part of a sentence. Two digests only say that code or a table is another one."""
    ours, theirs = difference.ours, difference.theirs
    if _is_digest(ours) and _is_digest(theirs):
        return f"'{difference.path}' has another content than before (digest {ours[:12]}, was {theirs[:12]})"
    texts = ("nothing" if side is MISSING else json.dumps(side) for side in (ours, theirs))
    now, before = _cropped(*texts)
    return f"'{difference.path}' is {now}, but was {before}"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _cropped(ours: str, theirs: str) -> tuple[str, str]:
    shorter = min(len(ours), len(theirs))
    common = next((i for i in range(shorter) if ours[i] != theirs[i]), shorter)
    if common < WIDEST // 2 or max(len(ours), len(theirs)) <= WIDEST:
        return cut(ours), cut(theirs)
    begin = common - WIDEST // 4
    return cut(f"... {ours[begin:]}"), cut(f"... {theirs[begin:]}")
