"""Slightly other values of an array, to find out what depends on the values that it has."""

from __future__ import annotations

import importlib
from typing import Any

from gtstub.util.bits import in_host_memory

AMOUNT = 2.0**-10
"""The most that a number changes by, relative to itself; more for types with fewer bits."""


MOST_HIDDEN = 1 / 4
"""The share of the numbers of an array that may not be finite, so that a comparison still says something about it."""


def hidden(array: Any) -> str | None:
    """
    How many numbers of an array are not finite, if they are so many that nothing is said about it by a comparison: NaN
    and infinity mostly stay what they are, whatever is done to them. None if it is few.
    """
    import numpy as np

    if not can_change(array):
        return None
    count = array.size - int(np.isfinite(in_host_memory(array)).sum())
    return f"{count} of {array.size} elements" if count > MOST_HIDDEN * array.size else None


def can_change(array: Any) -> bool:
    """Whether an array has floating-point or complex numbers. Others may be indices or masks, and must stay valid."""
    return array.dtype.kind in "fc" and array.size > 0


def writable(array: Any) -> Any:
    """A view that can be written, of an array of numpy that is a read-only view of memory that can; else the array."""
    import numpy as np

    if not isinstance(array, np.ndarray) or array.flags.writeable:
        return array
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:
        return array
    return view


def perturb(array: Any, seed: int) -> None:
    """
    Changes all finite numbers of an array slightly. The same array, values and seed give the same numbers. Signs stay,
    so that roots exist; a zero becomes a small positive number.
    """
    import numpy as np

    values = in_host_memory(array).reshape(array.shape)
    array[...] = _like(array, _perturbed(values, np.random.default_rng(seed)))


def _perturbed(values: Any, random: Any) -> Any:
    """A numpy array with slightly other numbers than `values`."""
    import numpy as np

    if values.dtype.kind == "c":
        made = np.empty_like(values)
        made.real, made.imag = (_perturbed(part, random) for part in (values.real, values.imag))
        return made
    dtype = values.dtype
    amount = max(AMOUNT, 8 * float(np.finfo(dtype).eps))
    shares = amount * random.uniform(0.5, 1.0, values.shape)
    signs = random.choice((-1.0, 1.0), values.shape)
    is_finite = np.isfinite(values)
    largest = float(np.abs(values, where=is_finite, out=np.zeros_like(values)).max())
    with np.errstate(all="ignore"):
        made = np.where(values == 0, shares * min(largest or 1.0, 1.0), values * (1 + signs * shares)).astype(dtype)
        made = np.where(np.isfinite(made), made, (values * (1 - shares)).astype(dtype))
        made = np.where(made == values, np.nextafter(values, dtype.type(1)), made)
    return np.where(is_finite, made, values)


def _like(array: Any, values: Any) -> Any:
    """Values of numpy as the library of an array takes them."""
    import numpy as np

    if isinstance(array, np.ndarray):
        return values
    return importlib.import_module(type(array).__module__.partition(".")[0]).asarray(values)
