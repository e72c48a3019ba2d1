"""Draws a field on the cells of the sphere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import netCDF4
import numpy as np
from matplotlib.collections import PolyCollection

VIEWS = {"from 0° E": 0.0, "from 180° E": np.pi}
LATITUDE = np.radians(30.0)
"""From where the sphere is seen."""


def draw(grid_file: Path, values: np.ndarray[Any, Any], title: str, path: Path) -> None:
    """Writes a PNG with both halves of the sphere. `values` has one value for each cell; `title` has its unit."""
    with netCDF4.Dataset(grid_file) as grid:
        longitude, latitude = (np.asarray(grid[name][:]) for name in ("vlon", "vlat"))
        cells = np.asarray(grid["vertex_of_cell"][:]).T - 1
    figure, axes = plt.subplots(1, 2, figsize=(10, 5.4), layout="constrained")
    for axis, (name, begin) in zip(axes, VIEWS.items(), strict=True):
        x, y, towards = _orthographic(longitude - begin, latitude)
        is_seen = (towards[cells] > 0).all(axis=1)
        corners = np.stack([x[cells[is_seen]], y[cells[is_seen]]], axis=-1)
        drawn = PolyCollection(list(corners), array=values[is_seen], cmap="viridis", edgecolors="face", linewidths=0.2)
        drawn.set_clim(values.min(), values.max())
        axis.add_collection(drawn)
        axis.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal", title=name)
        axis.axis("off")
    figure.suptitle(title)
    figure.colorbar(drawn, ax=axes, orientation="horizontal", shrink=0.6, aspect=40)
    figure.savefig(path, dpi=120, metadata={"Software": ""})
    plt.close(figure)


def _orthographic(longitude: Any, latitude: Any) -> tuple[Any, Any, Any]:
    x = np.cos(latitude) * np.sin(longitude)
    y = np.cos(LATITUDE) * np.sin(latitude) - np.sin(LATITUDE) * np.cos(latitude) * np.cos(longitude)
    towards = np.sin(LATITUDE) * np.sin(latitude) + np.cos(LATITUDE) * np.cos(latitude) * np.cos(longitude)
    return x, y, towards
