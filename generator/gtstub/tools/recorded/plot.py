"""A plot of the differences between a replayed field and the recorded one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtstub.tools.recorded.replay import Worst
from gtstub.util.figure import drawing

if TYPE_CHECKING:
    import numpy as np

MOST_CELLS = 400
"""The most cells along an axis. A cell shows the greatest difference of the elements that it stands for."""


def plot_worst(worst: Sequence[Worst], path: Path) -> None:
    """
    Draws the differences of the worst field over its last two axes, in units in the last place on a logarithmic scale.
    The maximum is taken over the other axes, which the title names. Differences without such a distance (NaN, infinity,
    integers) are red.
    """
    import numpy as np

    from gtstub.tools.recorded.compare import APART, ulp_distances

    found = [(ulp_distances(*map(np.atleast_1d, (one.expected, one.found))), one) for one in worst]
    fields = [(np.where(distances == APART, np.inf, distances), one) for distances, one in found]
    distances, field = max(fields, key=lambda pair: float(pair[0].max()))
    value = field.value
    plane, steps = to_plane(distances)
    dims, origin, shape = ["", "", *value.leaf.dims][-2:], [0, 0, *value.origin][-2:], [1, 1, *value.shape][-2:]
    apart = np.isinf(plane)
    shown = np.where((plane > 0) & ~apart, plane, np.nan)
    with drawing(path, 8, 5 if plane.shape[0] > 1 else 2) as figure:
        axes = figure.subplots()
        starts = [start - 0.5 for start in origin]
        top, right = (start + size * step for start, size, step in zip(starts, plane.shape, steps, strict=True))
        options: Any = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}
        options["extent"] = (starts[1], right, starts[0], top)
        highest = float(np.max(shown, where=np.isfinite(shown), initial=10.0))
        image = axes.imshow(shown, cmap="viridis", norm="log", vmin=1, vmax=highest, **options)
        axes.imshow(np.where(apart, 1.0, np.nan), cmap="autumn", vmin=1, vmax=2, **options)
        label = "difference [ulp]" + ("; red: NaN, infinity or integers" if apart.any() else "")
        figure.colorbar(image, label=label, ticks=ticks(highest), format="{x:g}").minorticks_off()
        axes.set(xlabel=dims[1], xlim=(starts[1], starts[1] + shape[1]))  # because the last cell may extend beyond
        axes.set(ylabel=dims[0], ylim=(starts[0], starts[0] + shape[0]))
        axes.locator_params(integer=True)
        if not dims[0]:
            axes.set_yticks([])
        count = int(np.count_nonzero(distances))
        place = f"{value.leaf.path} of {field.call.program.name}, call {field.call.number} of {field.archive.path.name}"
        figure.suptitle(
            f"{place}: {count} of {distances.size} elements differ{collapsed(value.leaf.dims, steps)}",
            fontsize=10,
        )


def ticks(highest: float) -> list[float]:
    """The powers of ten up to `highest`, with steps between them if they are few, or only some of them if many."""
    powers = math.floor(math.log10(highest)) + 1
    factors = (1, 2, 5) if powers <= 3 else (1,)
    return [
        factor * 10.0**power
        for power in range(0, powers, math.ceil(powers / 10))
        for factor in factors
        if factor * 10.0**power <= highest
    ]


def collapsed(dims: Sequence[str], steps: tuple[int, int]) -> str:
    """A line about the elements of a cell: those along all axes but the last two, and neighbors on these."""
    parts = [f"along {' and '.join(dims[:-2])}"] if dims[2:] else []
    if steps != (1, 1):
        parts.append("of " + " × ".join(map(str, steps[-len(dims[-2:]) :])) + " neighbors")
    return f"\neach cell shows the largest difference {', and '.join(parts)}" if parts else ""


def to_plane(distances: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], tuple[int, int]]:
    """The last two axes in at most MOST_CELLS cells each, and the number of elements of a cell along both."""
    import numpy as np

    plane = np.max(np.atleast_2d(distances), axis=tuple(range(max(0, distances.ndim - 2))))
    rows, columns = (math.ceil(size / MOST_CELLS) for size in plane.shape)
    for axis, step in enumerate((rows, columns)):
        plane = np.maximum.reduceat(plane, range(0, plane.shape[axis], step), axis=axis)
    return plane, (rows, columns)
