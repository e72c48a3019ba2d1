"""Converts arguments that DaCe takes, but no stub does: lists, objects, and arrays with other axes of size 1."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gtstub.stub.signature.model import ArrayArgument


@dataclasses.dataclass(frozen=True)
class Conversion:
    """
    Makes arguments that a program takes of those that it has refused. `arrays` are its parameters by the numbers of
    their arguments in a call.
    """

    program: str
    arrays: Mapping[int, ArrayArgument]
    _views: WeakValueDictionary[tuple[str, int], Any] = dataclasses.field(default_factory=WeakValueDictionary)

    def __call__(self, args: tuple[Any, ...], is_bound: bool) -> tuple[Any, ...] | None:
        """
        The arguments with which the program is called once more, or None if that would not help. A bound call keeps its
        arguments, so that it must not get a copy.

        Raises TypeError and ValueError for what cannot be converted.
        """
        made = list(args)
        for number, array in self.arrays.items():
            made[number] = self._converted(array, args[number], is_bound)
        return None if all(map(operator.is_, made, args)) else tuple(made)

    def _converted(self, array: ArrayArgument, value: Any, is_bound: bool) -> Any:
        if isinstance(value, np.ma.MaskedArray | np.generic):
            return value
        if isinstance(value, list | tuple):
            value = self._copied(array, value, is_bound)
        elif _has_interface(value):
            value = self._shared(array, value)
        elif isinstance(value, np.ndarray):  # a matrix keeps its two axes
            value = value if value.ndim == len(array.axes) else np.asarray(value)
        elif not (hasattr(value, "__cuda_array_interface__") and hasattr(value, "reshape")):
            return value
        return self._reshaped(array, value)

    def _copied(self, array: ArrayArgument, value: Any, is_bound: bool) -> Any:
        kind = type(value).__name__
        if array.written:
            raise TypeError(
                f"{self._start(array)} is written by the program, but what it writes into a copy of a '{kind}' would be"
                " lost; pass an array."
            )
        if is_bound:
            raise TypeError(
                f"{self._start(array)} must be an array in a bound call, because the call would keep a copy of the"
                f" '{kind}'."
            )
        try:
            found = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self._start(array)} is a '{kind}' that is no array: {error}") from None
        made = _as_dtype(found, np.dtype(array.dtype), value)
        if made is None:
            raise TypeError(
                f"{self._start(array)} is a '{kind}' of '{found.dtype}', not all of whose elements fit '{array.dtype}'."
            )
        if _has_mask(value):
            raise TypeError(
                f"{self._start(array)} is a '{kind}' with a masked array, but a program would use its masked elements"
                " too."
            )
        return made

    def _shared(self, array: ArrayArgument, value: Any) -> Any:
        """An array of numpy on the memory that an object shows by its `__array_interface__`."""
        kind = type(value).__name__
        interface = value.__array_interface__
        is_shared = isinstance(interface, Mapping) and isinstance(interface.get("data"), tuple)
        if array.written and not is_shared:
            raise TypeError(
                f"{self._start(array)} is written by the program, but the '__array_interface__' of the '{kind}' may"
                " have a copy; pass an array."
            )
        try:
            return np.asarray(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{self._start(array)} has an '__array_interface__' that numpy cannot read: {error}"
            ) from None

    def _reshaped(self, array: ArrayArgument, value: Any) -> Any:
        """The array itself, or a view of it without axes of size 1, or with others."""
        shape, sizes = value.shape, [axis.size for axis in array.axes]
        if len(shape) == len(sizes):
            return value
        found = _dropped(shape, len(sizes)) if len(shape) > len(sizes) else _inserted(shape, sizes)
        found = {each for each in found if all(size in (None, one) for one, size in zip(each, sizes, strict=True))}
        if len(found) > 1:
            shapes = " or ".join(map(str, sorted(found)))
            raise ValueError(
                f"{self._start(array)} must have {len(sizes)} dimensions, but its shape {shape} may stand for {shapes};"
                " reshape it."
            )
        return self._view(array, value, value.reshape(*found)) if found else value

    def _view(self, array: ArrayArgument, value: Any, made: Any) -> Any:
        """A new view of an array, or an equal one of an earlier call that still exists, as those of bound calls do."""
        if not isinstance(made, np.ndarray):
            return made
        known = self._views.setdefault((array.name, id(value)), made)
        if known.__array_interface__ == made.__array_interface__:
            return known
        self._views[array.name, id(value)] = made
        return made

    def _start(self, array: ArrayArgument) -> str:
        return f"Argument '{array.name}' of program '{self.program}'"


def _has_interface(value: Any) -> bool:
    """Whether only its `__array_interface__` makes an object an array; the stub knows the other protocols."""
    others = ("__cuda_array_interface__", "__dlpack__")
    return hasattr(value, "__array_interface__") and not any(hasattr(value, name) for name in others)


def _has_mask(value: Any) -> bool:
    """Whether a list that is an array contains a masked array, of which numpy drops the mask."""
    return isinstance(value, np.ma.MaskedArray) or (isinstance(value, list | tuple) and any(map(_has_mask, value)))


def _as_dtype(found: Any, dtype: Any, value: Any) -> Any:
    """
    An array with elements of another type; None if it does not hold them all. Only fractions are rounded, and no
    integer of the list `value`, also where numpy has made floats of all because there is one.
    """
    if found.dtype.kind not in ("biufc" if dtype.kind == "c" else "biuf"):
        return None
    with np.errstate(all="ignore"):
        made = found.astype(dtype)
    if made.dtype.kind in "fc":
        is_same = np.can_cast(found.dtype, dtype, "same_kind") and np.array_equal(np.isinf(found), np.isinf(made))
        number = dtype.type(0).real.dtype.type
        if is_same and bool(np.any(np.abs(made) >= 2.0 ** np.finfo(number).nmant)):
            is_same = all(int(number(each)) == each for each in _integers(value))
    else:
        is_exact = found.dtype.kind != "f" or bool(np.all(np.abs(found) < 2**53))
        is_same = is_exact and np.array_equal(found, made)
    return made if is_same else None


def _integers(value: Any) -> Iterator[int]:
    """The integers in a list of numbers, lists and arrays."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _integers(each)
    elif isinstance(value, np.ndarray | np.integer) and value.dtype.kind in "iu":
        yield from value.ravel().tolist()
    elif isinstance(value, int):
        yield value


def _dropped(shape: Iterable[int], rank: int) -> set[tuple[int, ...]]:
    """The shapes with `rank` axes that a shape has without some axes of size 1."""
    found: set[tuple[int, ...]] = {()}
    for size in shape:
        with_it = {(*each, size) for each in found if len(each) < rank}
        found = with_it | found if size == 1 else with_it
    return {each for each in found if len(each) == rank}


def _inserted(shape: Sequence[int], sizes: Iterable[int | None]) -> set[tuple[int, ...]]:
    """The shapes that a shape has with more axes, where the sizes of a parameter are 1."""
    found: set[tuple[tuple[int, ...], int]] = {((), 0)}
    """With the number of the axes that it has of `shape`."""
    for size in sizes:
        with_own = {((*each, shape[count]), count + 1) for each, count in found if count < len(shape)}
        found = with_own | ({((*each, 1), count) for each, count in found} if size == 1 else set())
    return {each for each, count in found if count == len(shape)}
