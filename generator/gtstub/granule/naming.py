"""The arrays that a user names: an array, a mapping of names, a sequence, or an object whose attributes are arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gtstub.errors import GranuleError
from gtstub.granule.memory import Layout

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

LONGEST = 63
"""The longest name in Fortran 2018, in characters."""


def named_arrays(values: Mapping[str, Any], granule: str) -> dict[str, Layout]:
    """
    The arrays of a mapping. An object whose attributes are arrays gives the name of the object, an underscore and that
    of the attribute; a sequence gives numbers. Other values in an object are left out. Raises GranuleError.
    """
    found: dict[str, Layout] = {}
    for name, value in values.items():
        inside = dict(_arrays(name, value))
        if not inside:
            raise GranuleError(
                f"Argument '{name}' of granule '{granule}' has no array: it is of type '{type(value).__qualname__}'."
            )
        found |= inside
    return found


def arrays_of(value: Any) -> dict[str, Layout]:
    """The arrays of a mapping, or of an object that has them as attributes, by their names there."""
    found: dict[str, Layout] = {}
    for name, each in _members(value):
        found |= dict(_arrays(name.lstrip("_"), each))
    return found


def layout_of(value: Any) -> Layout | None:
    """The memory of a field or an array on the CPU; None for any other value."""
    array = getattr(value, "ndarray", value)
    if isinstance(array, np.generic) or not hasattr(array, "__array_interface__"):
        return None
    read = np.asarray(array)
    return Layout.of(read) if read.ndim > 0 else None


def _arrays(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Layout]]:
    if (layout := layout_of(value)) is not None:
        yield name, layout
    elif depth < 3:
        for member, each in _members(value):
            yield from _arrays(f"{name}_{member}", each, depth + 1)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(name), each) for name, each in value.items())
    elif hasattr(value, "_fields"):
        yield from ((name, getattr(value, name)) for name in value._fields)
    elif isinstance(value, list | tuple):
        yield from ((str(number), each) for number, each in enumerate(value))
    elif hasattr(value, "__dict__") and not callable(value):
        yield from ((name, each) for name, each in vars(value).items() if not name.startswith("__"))


def check_name(kind: str, name: str, granule: str) -> None:
    """Raises GranuleError for a name that C or Fortran does not allow."""
    if NAME.fullmatch(name) is None or name.lower().startswith("gts_"):
        raise GranuleError(
            f"The name of {kind} '{name}' of granule '{granule}' must begin with a letter, but not with 'gts_', and "
            f"contain letters, digits and underscores alone."
        )
    if len(name) > LONGEST:
        raise GranuleError(
            f"The name of {kind} '{name}' of granule '{granule}' has {len(name)} characters; Fortran allows {LONGEST}."
        )


class Names:
    """Gives each array a name that differs from all others also in Fortran, which ignores case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> bool:
        """Whether the name was free. Now it is taken."""
        is_free = name.lower() not in self._taken
        self._taken.add(name.lower())
        return is_free

    def new(self, *choices: str) -> str:
        """The first choice that is free, or the last one with a number."""
        cleaned = [re.sub(r"[^A-Za-z0-9]+", "_", each).strip("_") for each in choices]
        cleaned = [each if each[:1].isalpha() else f"array_{each}".rstrip("_") for each in cleaned]
        cleaned += [f"{cleaned[-1]}_{number}" for number in range(2, 10_000)]
        return next(each for each in (name[:LONGEST] for name in cleaned) if self.take(each))
