"""
Comparisons in units in the last place. 0 equals -0, and NaN equals NaN. Of complex numbers the greater distance of both
parts counts. Different integers, NaN or infinity and another number are `APART`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gtstub.tools.recorded.archive import Call, Value

type AnyArray = np.ndarray[Any, Any]

APART = 2**64 - 1
"""The distance of different values that cannot be measured in units in the last place."""


def ulp_distances(a: AnyArray, b: AnyArray) -> AnyArray:
    """The distances of the elements of two arrays of one type, which have axes, as uint64."""
    match a.dtype.kind:
        case "c":
            return np.maximum(ulp_distances(a.real, b.real), ulp_distances(a.imag, b.imag))
        case "b":  # Any byte but 0 is true.
            return np.where((_bits(a) != 0) == (_bits(b) != 0), np.uint64(0), np.uint64(APART))
        case "f":
            x, y = _places(a), _places(b)
            distances: AnyArray = y.view(np.uint64) - x.view(np.uint64)  # Also if it is more than half the range.
            np.negative(distances, out=distances, where=x > y)
            if not (np.isfinite(a).all() and np.isfinite(b).all()):
                distances[~(np.isfinite(a) & np.isfinite(b))] = APART
                distances[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
            return distances
    return np.where(a == b, np.uint64(0), np.uint64(APART))


def _places(values: AnyArray) -> AnyArray:
    """The positions of numbers among all of their type: 0 for 0 and -0, and 1 more for each next larger number."""
    bits = _bits(values, "i")
    places: AnyArray = np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(np.int64, copy=False)
    return places


def _bits(array: AnyArray, kind: str = "u") -> AnyArray:
    return array.view(f"{kind}{array.dtype.itemsize}")


def _differs(a: AnyArray, b: AnyArray) -> AnyArray:
    """Where two arrays have other bits."""
    is_complex = a.dtype.kind == "c"
    found: AnyArray = _differs(a.real, b.real) | _differs(a.imag, b.imag) if is_complex else _bits(a) != _bits(b)
    return found


def compare(call: Call, value: Value, expected: Iterable[AnyArray], found: AnyArray, tolerance: int) -> dict[str, Any]:
    """A comparison in the report of a replay (docs/formats.md). `expected` is in the blocks of `Archive.blocks`."""
    packed = found.reshape(-1, order="F")
    begin = differ = beyond = greatest = 0
    worst = None
    for block in expected:
        part = packed[begin : begin + block.size]
        differs = _differs(block, part)
        if differs.any():
            a, b = block[differs], part[differs]
            distances = ulp_distances(a, b)
            differ += int(np.count_nonzero(distances))
            beyond += int(np.count_nonzero((distances > tolerance) | (distances == APART)))
            position = int(np.argmax(distances))
            if (ulp := int(distances[position])) > greatest:
                greatest = ulp
                worst = _worst(value, begin + int(np.flatnonzero(differs)[position]), a[position], b[position], ulp)
        begin += block.size
    return {
        "program": call.program.name,
        "call": call.number,
        "argument": value.leaf.path,
        "dtype": value.leaf.dtype,
        "dims": list(value.leaf.dims),
        "elements": packed.size,
        "tolerance": tolerance,
        "differ": differ,
        "beyond": beyond,
        "worst": worst,
    }


def _worst(value: Value, place: int, a: Any, b: Any, ulp: int) -> dict[str, Any]:
    """An element that differs: its place among all elements, its recorded value and the new one."""
    index = np.unravel_index(place, value.shape, order="F")
    parts = [(float(a.real), float(b.real)), (float(a.imag), float(b.imag))]
    size = _greatest(abs(x) for x, _ in parts)
    absolute = _greatest(abs(y - x) for x, y in parts)
    return {
        "index": [start + int(one) for start, one in zip(value.origin, index, strict=True)],
        "expected": _to_json(a),
        "found": _to_json(b),
        "ulp": None if ulp == APART else ulp,
        "absolute": _number(absolute, 6),
        "relative": None if size == 0 else _number(absolute / size, 6),
    }


def _greatest(values: Iterable[float]) -> float:
    """The greatest number, or NaN if one is NaN."""
    return float(np.max(list(values)))


def _to_json(value: Any) -> Any:
    if isinstance(value, np.complexfloating):
        return [_to_json(value.real), _to_json(value.imag)]
    return _number(float(value), 17 if value.itemsize == 8 else 9) if isinstance(value, np.floating) else value.item()


def _number(value: float, digits: int) -> Any:
    """A number with so many significant digits; infinities and NaN become texts."""
    return json.loads(f"{value:.{digits}g}") if math.isfinite(value) else str(value)
