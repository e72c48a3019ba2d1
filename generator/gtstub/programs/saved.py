"""Arrays with the values that they had, which are put back after a method or a hook has changed them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from gtstub.errors import reason


class Saved:
    """`arrays` are places for messages, such as "array 'history'", arrays, and copies of their values."""

    def __init__(self, arrays: Iterable[tuple[str, Any, Any]]) -> None:
        self._arrays = [(place, array, before, is_writable(array)) for place, array, before in arrays]

    def restore(self) -> list[str]:
        """Puts back all values that it can, shapes and flags. Returns why others could not be put back."""
        refusals = []
        fixed = [array for _, array, _, _ in self._arrays if not is_writable(array)]
        for array in sorted(fixed, key=lambda each: not each.flags.owndata):  # Views can be written after their owners.
            with suppress(ValueError):
                array.flags.writeable = True
        for place, array, before, could_be_written in self._arrays:
            try:
                if could_be_written or is_writable(array):
                    _put_back(array, before)
            except Exception as error:  # It has been resized in place.
                refusals.append(f"{place} cannot be put back: {type(error).__name__}: {reason(error)}")
        for _, array, _, could_be_written in self._arrays:
            if not could_be_written:
                array.flags.writeable = False
        return refusals


def is_writable(array: Any) -> bool:
    """Whether elements can be set now."""
    return bool(getattr(getattr(array, "flags", None), "writeable", True))


def may_be_written(array: Any) -> bool:
    """Whether elements can be set, perhaps only while a method runs that allows it."""
    return is_writable(array) or bool(array.flags.owndata)


def _put_back(array: Any, before: Any) -> None:
    if array.shape != before.shape:
        array.resize(before.shape)  # Refuses another size, because there are other references.
    array[...] = before
