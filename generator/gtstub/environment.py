"""Numbers that environment variables hold."""

from __future__ import annotations

import math
import os

from gtstub.errors import GtstubError


def seconds(variable: str, default: float, error: type[GtstubError], or_none: bool = False) -> float:
    """A time from the environment, more than 0 unless `or_none`. Raises `error` where the variable holds none."""
    text = os.environ.get(variable, str(default))
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0 or (found == 0 and not or_none):
        raise error(f"{variable} must be a number of seconds, but is '{text}'.")
    return found
