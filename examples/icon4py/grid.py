"""The grid of programs.toml: the torus of the granules."""

from __future__ import annotations

from typing import Any

from examples.granule.torus import Torus


def torus() -> Any:
    return Torus(levels=10).grid
