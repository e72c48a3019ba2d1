"""Results that are computed once for each object."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any


def once_per_object[T, **P](function: Callable[P, T]) -> Callable[P, T]:
    """
    Decorates a function whose result depends on its first argument only, which need not be hashable. The result is
    stored by the identity of that argument, until another object has the same identity.
    """
    known: dict[int, tuple[weakref.ref[Any], T]] = {}

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        key = args[0]
        found = known.get(id(key))
        if found is None or found[0]() is not key:
            found = known[id(key)] = (weakref.ref(key), function(*args, **kwargs))
        return found[1]

    return wrapper
